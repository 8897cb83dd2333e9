"""`lint`: checks a provider's directory as the install container would, and lists what it cannot know yet."""

from __future__ import annotations

import ast
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from llamastack_providers import conflicts, dependencies, integrity, layout, package_spec, shadowing, wheels
from llamastack_providers.dependencies import Distribution
from llamastack_providers.errors import Code, Failure
from llamastack_providers.package_spec import PackageSpec
from llamastack_providers.wheels import Wheel

_OF_THIS_PYTHON: Final = frozenset({Code.WrongPlatform, Code.WrongArchitecture, Code.PythonTooOld})
"""Checked with the Python that runs the lint, which may not be the image's."""


def main(folder: Path) -> int:
    """Prints every problem of the directory; returns 0 if it can be installed."""
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
        ]
    except Failure as failure:
        failures, chosen = [failure], []
    errors = [one for one in failures if one.code not in _OF_THIS_PYTHON]
    for one in failures:
        kind = "error" if one in errors else "warning"
        print(f"{kind}: {one.code.name}: {one.reason}\n  Resolution: {one.code.value.resolution}")
    for requirement in _from_elsewhere(chosen):
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


def _selection(spec: PackageSpec, folder: Path) -> tuple[Path, ...]:
    selection = wheels.select(spec, folder)
    for name in selection.unlisted:
        print(
            f"warning: {name} is in packages/ but not in spec.dependencyWheels, so it will not be installed"
        )
    return selection.paths


def _distributions(chosen: list[Wheel]) -> list[Distribution]:
    return [Distribution(one.name, one.version, one.requires) for one in chosen]


def _conflicts(chosen: list[Wheel]) -> Iterator[Failure]:
    try:
        conflicts.check(_distributions(chosen), {})
    except Failure as failure:
        yield failure


def _shadowing(chosen: list[Wheel]) -> Iterator[Failure]:
    """What preflight would refuse with any server."""
    for wheel in chosen:
        if problem := shadowing.in_a_server(wheel.name, wheel.files):
            yield Failure(Code.ModuleShadowed, f"{problem} ({wheel.path.name})")


def _from_elsewhere(chosen: list[Wheel]) -> Iterator[str]:
    present = {one.name: one for one in _distributions(chosen)}
    for miss in dependencies.unmet(present):
        if miss.found is None:
            yield f"{miss.needs.name} requires {miss.requirement}"


def _provider_module(spec: PackageSpec, chosen: list[Wheel]) -> Iterator[Failure]:
    """The main wheel must have `<packageName>.provider` with a get_provider_spec; the source is read, never
    imported."""
    module = f"{spec.package_name}.provider"
    below = module.replace(".", "/")
    with zipfile.ZipFile(chosen[0].path) as archive:
        names = [name for name in (f"{below}.py", f"{below}/__init__.py") if name in archive.namelist()]
        source = archive.read(names[0]) if names else None
    if source is None:
        yield Failure(Code.SpecFunction, f"{chosen[0].path.name} has no module {module}")
        return
    try:
        bound = set(_bound(ast.parse(source).body))
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        yield Failure(Code.ImportFailed, f"{names[0]}{line}: {error.msg}")
        return
    except (ValueError, RecursionError, MemoryError) as error:
        # NUL, or more nesting than Python's parser accepts
        yield Failure(Code.ImportFailed, f"{names[0]} is not Python: {error or 'it is nested too deeply'}")
        return
    if bound.isdisjoint({"get_provider_spec", "*"}):
        yield Failure(Code.SpecFunction, f"{names[0]} defines no get_provider_spec")


def _bound(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that a module's statements bind, `*` for those of another module."""
    left: list[ast.AST] = list(statements)
    while left:
        node = left.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            # what is inside belongs to it
            yield node.name
            continue
        if isinstance(node, ast.alias):
            yield node.asname or node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        left += () if isinstance(node, ast.Lambda) else ast.iter_child_nodes(node)
