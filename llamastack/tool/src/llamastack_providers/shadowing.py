"""Finds modules of a provider that shadow those of Python or the distribution.

Providers' packages come first on the path, so such modules would replace the others in the server. Only reads
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

_STARTUP_MODULES: Final = frozenset({"sitecustomize", "usercustomize"})
"""Modules that Python imports itself when it starts."""
_UNUSED_FOLDERS: Final = frozenset(
    {"test", "tests", "doc", "docs", "examples", "benchmarks", "scripts", "bin"}
)
"""Directories that wheels contain by mistake, and that nobody imports."""
_MODULE: Final = re.compile(r"([^./]+)(\.[^/]*)?\.(py|pyc|so)")
_NAMESPACE_MARKS: Final = (b"extend_path", b"declare_namespace")
"""Words by which an `__init__.py` declares that its package has several locations."""

_OTHER_NAMES: Final = {
    **dict.fromkeys(("llama_stack", "llama_stack_api", "llama_stack_client", "ogx", "ogx_api"), ""),
    "attr": "attrs",
    "dotenv": "python-dotenv",
    "jwt": "pyjwt",
    "rpds": "rpds-py",
    "yaml": "pyyaml",
}
_SAME_NAMES: Final = """
    aiohappyeyeballs aiohttp aiosignal aiosqlite annotated_doc annotated_types anyio attrs certifi click cryptography
    distro fastapi frozenlist greenlet h11 httpcore httpx httpx2 httpx_sse idna jiter jsonschema
    jsonschema_specifications mcp multidict openai propcache pydantic pydantic_core pydantic_settings pygments
    python_multipart referencing requests rich sniffio sqlalchemy sse_starlette starlette structlog termcolor
    typing_extensions typing_inspection uvicorn yarl
"""
"""Modules whose package has the same name."""
SERVER_MODULES: Final = {**{name: canonicalize_name(name) for name in _SAME_NAMES.split()}, **_OTHER_NAMES}
"""Package of each module that every llama-stack server imports. An author's machine knows no more about an image."""


def modules(paths: Iterable[str]) -> dict[str, str]:
    """Return the top-level modules among the files of a wheel or tree, with the first file of each."""
    first_files: dict[str, str] = {}
    for path in paths:
        top, slash, _ = path.partition("/")
        name = _MODULE.fullmatch(path.rpartition("/")[2])
        if name and not top.endswith((".dist-info", ".data")):
            first_files.setdefault(top if slash else name[1], path)
    return first_files


def of_python(paths: Iterable[str]) -> str:
    """Describe why one of the files is refused wherever it is installed. Empty if none is."""
    for name, path in modules(paths).items():
        if name in sys.stdlib_module_names or name in _STARTUP_MODULES:
            verb = "starts with" if name in _STARTUP_MODULES else "has"
            return f"{path} is a module '{name}', which Python {verb} itself"
    return ""


def of_the_server(packages: Path, records: Mapping[str, Record], base: Sequence[str]) -> Iterator[Failure]:
    """Yield replaced modules of the standard library, or of another package of the distribution.

    A package with the same name as the distribution's is another version of it, and allowed.

    Args:
        packages: The providers' tree.
        records: Records of the installed providers.
        base: Directories of the distribution's packages.

    Raises:
        OSError: A file is not readable.
    """
    folders = [Path(folder) for folder in base]
    names = [_listing(folder) for folder in folders]
    for record in records.values():
        if text := of_python(record.files):
            yield Failure(Code.ModuleShadowed, text, provider_id=record.provider_id)
        for name in modules(record.files):
            behind = [folder for folder, listed in zip(folders, names, strict=True) if name in listed]
            for path in _hidden(packages, behind, name):
                if hidden_packages := _hidden_packages(packages, behind, path):
                    text = f"{path} would replace the module of {hidden_packages} in the distribution image"
                    yield Failure(Code.ModuleShadowed, text, provider_id=record.provider_id)


def in_a_server(package: str, paths: Iterable[str]) -> str:
    """Describe the first file of a wheel that replaces a module of every server, known without an image.

    Args:
        package: Name of the wheel's package.
        paths: The wheel's files.
    """
    for name, path in modules(paths).items():
        if (owner := SERVER_MODULES.get(name)) is not None and canonicalize_name(package) != (
            owner or canonicalize_name(name)
        ):
            return f"{path} is a module '{name}', which the server has from {owner or 'llama-stack'}"
    return ""


def _listing(folder: Path) -> frozenset[str]:
    """Return the modules directly below, none if the path is not a directory (a zip file, say)."""
    names = set()
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir():
            names.add(path.name)
        elif match := _MODULE.fullmatch(path.name):
            names.add(match[1])
    return frozenset(names)


def _hidden(packages: Path, behind: Sequence[Path], dotted: str) -> Iterator[str]:
    """Yield paths of modules in the tree that hide others of the same name.

    Packages without `__init__.py` have several locations, so their modules are compared one by one.
    """
    if not behind or dotted in _UNUSED_FOLDERS:
        return
    package = packages / dotted
    if not package.is_dir() or _is_regular(package):
        yield dotted
        return
    locations = [
        folder / dotted
        for folder in behind
        if (folder / dotted).is_dir() and not _is_regular(folder / dotted)
    ]
    for name in sorted(_listing(package) - {"__init__"}):
        if any(name in _listing(folder) for folder in locations):
            yield from _hidden(packages, behind, f"{dotted}/{name}")


def _is_regular(folder: Path) -> bool:
    init = folder / "__init__.py"
    if not init.is_file():
        return False
    return not any(mark in init.read_bytes() for mark in _NAMESPACE_MARKS)


def _hidden_packages(packages: Path, behind: Sequence[Path], path: str) -> str:
    """Return the distribution's packages with the module, empty if the provider's is the same package."""
    own = set(_packages_of([packages], path))
    hidden = list(dict.fromkeys(_packages_of(behind, path)))
    return "" if own & set(hidden) else (", ".join(hidden) or "no package")


def _packages_of(folders: Iterable[Path], path: str) -> Iterator[str]:
    """Yield names of the packages whose list of files has the module."""
    file_name = path.rpartition("/")[2].replace('"', "")
    for package in importlib.metadata.distributions(path=[str(folder) for folder in folders]):
        # A list that no installer writes (another encoding, empty rows, sizes that are no numbers) has no module.
        with contextlib.suppress(ValueError, TypeError, csv.Error):
            # `files` looks for each of them on the disk: 0.2 s for all packages of a distribution. However a list is
            # written, one that has the module has its name; quotation marks are no part of it.
            record = package.read_text("RECORD")
            if record and file_name not in record.replace('"', ""):
                continue
            listed = map(str, package.files or ())
            if (name := package.metadata["Name"]) and any(
                file == path or file.startswith((f"{path}/", f"{path}.")) for file in listed
            ):
                yield canonicalize_name(name)
