"""Finds modules of a provider that shadow those of Python or the distribution.

Providers' packages come first on the path, so such modules would replace the others in the server. Only looks at
files, and imports nothing.
"""

from __future__ import annotations

import contextlib
import csv
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from llamastack_providers.errors import Code, Failure
from llamastack_providers.record import Record

_STARTED_WITH: Final = frozenset({"sitecustomize", "usercustomize"})
"""Modules that Python imports itself when it starts."""
_OF_NO_USE: Final = frozenset({"test", "tests", "doc", "docs", "examples", "benchmarks", "scripts", "bin"})
"""Directories that wheels contain by mistake, and that nobody imports."""
_MODULE: Final = re.compile(r"([^./]+)(\.[^/]*)?\.(py|pyc|so)")
_PORTION: Final = (b"extend_path", b"declare_namespace")
"""How an `__init__.py` declares that its package has several locations."""

_OTHERWISE: Final = {
    **dict.fromkeys(("llama_stack", "llama_stack_api", "llama_stack_client", "ogx", "ogx_api"), ""),
    "attr": "attrs",
    "dotenv": "python-dotenv",
    "jwt": "pyjwt",
    "rpds": "rpds-py",
    "yaml": "pyyaml",
}
_SAME: Final = """
    aiohappyeyeballs aiohttp aiosignal aiosqlite annotated_doc annotated_types anyio attrs certifi click cryptography
    distro fastapi frozenlist greenlet h11 httpcore httpx httpx2 httpx_sse idna jiter jsonschema
    jsonschema_specifications mcp multidict openai propcache pydantic pydantic_core pydantic_settings pygments
    python_multipart referencing requests rich sniffio sqlalchemy sse_starlette starlette structlog termcolor
    typing_extensions typing_inspection uvicorn yarl
"""
"""Modules whose package has the same name."""
SERVER_MODULES: Final = {**{name: canonicalize_name(name) for name in _SAME.split()}, **_OTHERWISE}
"""Module -> package for what every llama-stack server imports: all that an author's machine can know about an
image."""


def modules(paths: Iterable[str]) -> dict[str, str]:
    """Top-level modules among the files of a wheel or tree, with the first file of each."""
    found: dict[str, str] = {}
    for path in paths:
        top, slash, _ = path.partition("/")
        name = _MODULE.fullmatch(path.rpartition("/")[2])
        if name and not top.endswith((".dist-info", ".data")):
            found.setdefault(top if slash else name[1], path)
    return found


def of_python(paths: Iterable[str]) -> str:
    """Why one of the files is refused wherever it is installed; empty if none is."""
    for name, path in modules(paths).items():
        if name in sys.stdlib_module_names or name in _STARTED_WITH:
            whose = "starts with" if name in _STARTED_WITH else "has"
            return f"{path} is a module '{name}', which Python {whose} itself"
    return ""


def of_the_server(packages: Path, records: Mapping[str, Record], base: Sequence[str]) -> Iterator[Failure]:
    """What replaces a module of the standard library, or of another package of the distribution.

    A package with the same name as the distribution's is another version of it, and allowed. base: directories of the
    distribution's packages. Raises OSError.
    """
    folders = [Path(one) for one in base]
    names = [_listing(one) for one in folders]
    for record in records.values():
        if text := of_python(record.files):
            yield Failure(Code.ModuleShadowed, text, provider_id=record.provider_id)
        for name in modules(record.files):
            behind = [one for one, has in zip(folders, names, strict=True) if name in has]
            for path in _hidden(packages, behind, name):
                if theirs := _another(packages, behind, path):
                    text = f"{path} would replace the module of {theirs} in the distribution image"
                    yield Failure(Code.ModuleShadowed, text, provider_id=record.provider_id)


def in_a_server(package: str, paths: Iterable[str]) -> str:
    """Without an image: which of a wheel's files replaces a module that every server has. package: of the wheel."""
    for name, path in modules(paths).items():
        if (theirs := SERVER_MODULES.get(name)) is not None and canonicalize_name(package) != (
            theirs or canonicalize_name(name)
        ):
            return f"{path} is a module '{name}', which the server has from {theirs or 'llama-stack'}"
    return ""


def _listing(folder: Path) -> frozenset[str]:
    """The modules directly below; none if the path is not a directory (a zip file, say)."""
    found = set()
    for one in folder.iterdir() if folder.is_dir() else ():
        if one.is_dir():
            found.add(one.name)
        elif match := _MODULE.fullmatch(one.name):
            found.add(match[1])
    return frozenset(found)


def _hidden(packages: Path, behind: Sequence[Path], dotted: str) -> Iterator[str]:
    """Paths of modules in the tree that hide others of the same name. Packages without `__init__.py` have several
    locations; what is below them is compared one by one."""
    if not behind or dotted in _OF_NO_USE:
        return
    here = packages / dotted
    if not here.is_dir() or _regular(here):
        yield dotted
        return
    theirs = [one / dotted for one in behind if (one / dotted).is_dir() and not _regular(one / dotted)]
    for name in sorted(_listing(here) - {"__init__"}):
        if any(name in _listing(one) for one in theirs):
            yield from _hidden(packages, behind, f"{dotted}/{name}")


def _regular(folder: Path) -> bool:
    init = folder / "__init__.py"
    if not init.is_file():
        return False
    return not any(word in init.read_bytes() for word in _PORTION)


def _another(packages: Path, behind: Sequence[Path], path: str) -> str:
    """The distribution's package with the module, if the provider's is a different package."""
    ours = set(_packages_of([packages], path))
    theirs = list(dict.fromkeys(_packages_of(behind, path)))
    return "" if ours & set(theirs) else (", ".join(theirs) or "no package")


def _packages_of(folders: Iterable[Path], path: str) -> Iterator[str]:
    """Names of the packages whose list of files has the module."""
    named = path.rpartition("/")[2].replace('"', "")
    for found in importlib.metadata.distributions(path=[str(one) for one in folders]):
        # A list that no installer writes (another encoding, empty rows, sizes that are no numbers) has no module.
        with contextlib.suppress(ValueError, TypeError, csv.Error):
            # `files` looks for each of them on the disk: 0.2 s for all packages of a distribution. However a list is
            # written, one that has the module has its name; quotation marks are no part of it.
            record = found.read_text("RECORD")
            if record and named not in record.replace('"', ""):
                continue
            listed = map(str, found.files or ())
            if (name := found.metadata["Name"]) and any(
                file == path or file.startswith((f"{path}/", f"{path}.")) for file in listed
            ):
                yield canonicalize_name(name)
