"""Whether a provider brings modules under names that Python or the distribution has.

Providers' packages come first on the path, so these would take the others' place in the server. Files are looked at,
nothing is imported.
"""

from __future__ import annotations

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
"""Modules that Python imports by itself when it starts."""
_OF_NO_USE: Final = frozenset({"test", "tests", "doc", "docs", "examples", "benchmarks", "scripts", "bin"})
"""Folders that wheels carry by oversight, and that nobody imports."""
_MODULE: Final = re.compile(r"([^./]+)(\.[^/]*)?\.(py|pyc|so)")
_PORTION: Final = (b"extend_path", b"declare_namespace")
"""How an `__init__.py` says that its package lies in several places."""

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
"""Modules whose package has their name."""
SERVER_MODULES: Final = {**{name: canonicalize_name(name) for name in _SAME.split()}, **_OTHERWISE}
"""Module to package of what every llama-stack server imports: what an author's machine can know of an image."""


def modules(paths: Iterable[str]) -> dict[str, str]:
    """Top-level modules among the files of a wheel or tree, each with the first of its files."""
    found: dict[str, str] = {}
    for path in paths:
        top, slash, _ = path.partition("/")
        name = _MODULE.fullmatch(path.rpartition("/")[2])
        if name and not top.endswith((".dist-info", ".data")):
            found.setdefault(top if slash else name[1], path)
    return found


def of_python(paths: Iterable[str]) -> str:
    """Why one of the files is refused wherever it is installed; empty where none is."""
    for name, path in modules(paths).items():
        if name in sys.stdlib_module_names or name in _STARTED_WITH:
            whose = "starts with" if name in _STARTED_WITH else "has"
            return f"{path} is a module '{name}', which Python {whose} itself"
    return ""


def of_the_server(packages: Path, records: Mapping[str, Record], base: Sequence[str]) -> Iterator[Failure]:
    """What takes the place of a module of the standard library, or of another package of the distribution.

    A package of the same name as the distribution's is another version of it, and allowed. base: folders in which the
    distribution has its packages. Raises OSError.
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
    """As far as can be said without an image: which of a wheel's files takes the place of a module that every server
    has. package: of the wheel."""
    for name, path in modules(paths).items():
        if (theirs := SERVER_MODULES.get(name)) is not None and canonicalize_name(package) != (
            theirs or canonicalize_name(name)
        ):
            return f"{path} is a module '{name}', which the server has from {theirs or 'llama-stack'}"
    return ""


def _listing(folder: Path) -> frozenset[str]:
    """The modules directly below; none where the path leads to no folder (a zip file, say)."""
    found = set()
    for one in folder.iterdir() if folder.is_dir() else ():
        if one.is_dir():
            found.add(one.name)
        elif match := _MODULE.fullmatch(one.name):
            found.add(match[1])
    return frozenset(found)


def _hidden(packages: Path, behind: Sequence[Path], dotted: str) -> Iterator[str]:
    """Paths of modules of the tree that hide those of the same name behind it. Packages without `__init__.py` lie in
    several places at once; what is below them is looked at one by one."""
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
    """The package of the distribution that has the module, where the provider's is not the same package."""
    ours = set(_packages_of([packages], path))
    theirs = list(dict.fromkeys(_packages_of(behind, path)))
    return "" if ours & set(theirs) else (", ".join(theirs) or "no package")


def _packages_of(folders: Iterable[Path], path: str) -> Iterator[str]:
    """Names of the packages whose list of files has the module."""
    for found in importlib.metadata.distributions(path=[str(one) for one in folders]):
        listed = map(str, found.files or ())
        if (name := found.metadata["Name"]) and any(
            file == path or file.startswith((f"{path}/", f"{path}.")) for file in listed
        ):
            yield canonicalize_name(name)
