"""Implements `lint`: checks a provider's directory as the install container would.

It lists the open questions, too.
"""

from __future__ import annotations

import ast
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from llamastack_providers import (
    conflicts,
    dependencies,
    install,
    integrity,
    layout,
    package_spec,
    service,
    shadowing,
    wheels,
    yaml_file,
)
from llamastack_providers.dependencies import Distribution
from llamastack_providers.errors import Code, Failure
from llamastack_providers.package_spec import PackageSpec
from llamastack_providers.wheels import Wheel

_INTERPRETER_CODES: Final = frozenset({Code.WrongPlatform, Code.WrongArchitecture, Code.PythonTooOld})
"""Checked with the Python that runs the lint, which may not be the image's."""

_ENTRY_RESOLUTION: Final = (
    "Correct the file of --entry. It holds one provider of spec.server.externalProviders."
)
"""Replaces the resolution of BadCall, which here only the file of --entry can cause."""


def main(folder: Path, entry: Path | None = None) -> int:
    """Print every problem of the directory. Return 0 if it can be installed.

    Args:
        folder: The directory.
        entry: A file with the provider's entry in spec.server.externalProviders.
    """
    try:
        spec = _spec(folder)
        chosen = [wheels.read(path) for path in _selection(spec, folder)]
        for wheel in chosen:
            if problem := integrity.broken(wheel.path):
                raise Failure(Code.BadWheel, f"{wheel.path.name} is damaged: {problem}")
        failures = [
            *wheels.check(chosen),
            *_shadowing(chosen),
            *_conflicts(chosen),
            *_provider_module(spec, chosen),
            *(_entry(spec, entry) if entry else ()),
        ]
    except Failure as failure:
        failures, chosen = [failure], []
    errors = [item for item in failures if item.code not in _INTERPRETER_CODES]
    for item in failures:
        kind = "error" if item in errors else "warning"
        resolution = _ENTRY_RESOLUTION if item.code is Code.BadCall else item.code.value.resolution
        print(f"{kind}: {item.code.name}: {item.reason}\n  Resolution: {resolution}")
    for requirement in _missing_requirements(chosen):
        print(f"note: {requirement}, which is not in packages/: the distribution must have it")
    print(f"{folder}: {'cannot be installed' if errors else 'can be installed'}")
    return 1 if errors else 0


def _spec(folder: Path) -> PackageSpec:
    path = folder / layout.SPEC_FILE
    try:
        broken = list(package_spec.problems(package_spec.load(path, layout.SPEC_FILE)))
    except FileNotFoundError:
        raise Failure(Code.MissingSpec, f"{path} does not exist") from None
    if broken:
        raise Failure(Code.InvalidSpec, "\n  ".join(broken))
    return package_spec.read(path)


def _entry(spec: PackageSpec, path: Path) -> Iterator[Failure]:
    """Check the provider's entry in the custom resource as the install container would."""
    try:
        value = _read_entry(path)
        own_service = None
        if (written := value.get("service")) is not None:
            is_own = written.get("mode") == service.DEPLOYMENT
            transport = service.TCP if is_own else service.UNIX_SOCKET
            defaults = {"mode": service.SIDECAR, "transport": transport}
            own_service = service.parse({key: written.get(key, default) for key, default in defaults.items()})
        install.check_service(spec, value["providerId"], own_service, value.get("config"))
    except Failure as failure:
        yield failure


def _read_entry(path: Path) -> dict[str, Any]:
    """Return the provider that a file holds, alone or as the only item of a list.

    Raises:
        Failure: InvalidYaml, or BadCall if the file is not readable or holds no provider.
    """
    try:
        value = yaml_file.load(path, path.name)
    except OSError as error:
        raise Failure(Code.BadCall, f"{path} cannot be read: {error.strerror}") from None
    if isinstance(value, list):
        if len(value) != 1:
            raise Failure(Code.BadCall, f"{path} holds {len(value)} providers, not one")
        value = value[0]
    if not isinstance(value, dict):
        raise Failure(Code.BadCall, f"{path} holds no provider")
    if kind := value.get("kind"):
        raise Failure(Code.BadCall, f"{path} holds an object of kind {kind}, not one of its providers")
    if not (provider_id := value.get("providerId")) or not isinstance(provider_id, str):
        raise Failure(Code.BadCall, f"{path}: providerId must be a text, not {provider_id!r}")
    for key in ("service", "config"):
        if not isinstance(value.get(key), (dict, type(None))):
            raise Failure(Code.BadCall, f"{path}: {key} must be a mapping")
    return value


def _selection(spec: PackageSpec, folder: Path) -> tuple[Path, ...]:
    selection = wheels.select(spec, folder)
    for name in selection.unlisted:
        print(
            f"warning: {name} is in packages/ but not in spec.dependencyWheels, so it will not be installed"
        )
    return selection.paths


def _distributions(chosen: list[Wheel]) -> list[Distribution]:
    return [Distribution(wheel.name, wheel.version, wheel.requires) for wheel in chosen]


def _conflicts(chosen: list[Wheel]) -> Iterator[Failure]:
    try:
        conflicts.check(_distributions(chosen), {})
    except Failure as failure:
        yield failure


def _shadowing(chosen: list[Wheel]) -> Iterator[Failure]:
    """Yield the shadowed modules that preflight would refuse with any server."""
    for wheel in chosen:
        if problem := shadowing.in_a_server(wheel.name, wheel.files):
            yield Failure(Code.ModuleShadowed, f"{problem} ({wheel.path.name})")


def _missing_requirements(chosen: list[Wheel]) -> Iterator[str]:
    present = {package.name: package for package in _distributions(chosen)}
    for gap in dependencies.unmet(present):
        if gap.installed is None:
            yield f"{gap.needs.name} requires {gap.requirement}"


def _provider_module(spec: PackageSpec, chosen: list[Wheel]) -> Iterator[Failure]:
    """Check that the main wheel has `<packageName>.provider` with a get_provider_spec, without importing it."""
    module = f"{spec.package_name}.provider"
    below = module.replace(".", "/")
    with zipfile.ZipFile(chosen[0].path) as archive:
        names = [name for name in (f"{below}.py", f"{below}/__init__.py") if name in archive.namelist()]
        source = archive.read(names[0]) if names else None
    if source is None:
        yield Failure(Code.SpecFunction, f"{chosen[0].path.name} has no module {module}")
        return
    try:
        bound = set(_bound_names(ast.parse(source).body))
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        yield Failure(Code.ImportFailed, f"{names[0]}{line}: {error.msg}")
        return
    except (ValueError, RecursionError, MemoryError) as error:
        # The source has NUL, or more nesting than Python's parser accepts.
        yield Failure(Code.ImportFailed, f"{names[0]} is not Python: {error or 'it is nested too deeply'}")
        return
    if bound.isdisjoint({"get_provider_spec", "*"}):
        yield Failure(Code.SpecFunction, f"{names[0]} defines no get_provider_spec")


def _bound_names(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names that a module's statements bind, `*` for those of another module."""
    pending: list[ast.AST] = list(statements)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            # Names inside a definition are local to it.
            yield node.name
            continue
        if isinstance(node, ast.alias):
            yield node.asname or node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        pending += () if isinstance(node, ast.Lambda) else ast.iter_child_nodes(node)
