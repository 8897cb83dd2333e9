"""No public name of the SDK or the selector mentions a type that has no public name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, get_args, get_origin, get_type_hints

import pytest

MODULES = (
    "kubefoundry_sdk",
    "kubefoundry_sdk.cel",
    "kubefoundry_sdk.crd",
    "kubefoundry_sdk.engine",
    "kubefoundry_sdk.flags",
    "kubefoundry_sdk.kopf",
    "kubefoundry_sdk.pod",
    "kubefoundry_sdk.read_back",
    "kubefoundry_sdk.selector",
    "kubefoundry_sdk.spec",
    "kubefoundry_sdk.status",
    "kubefoundry_sdk.testing",
    "kubefoundry_selector",
)


def names_of(module: str) -> list[str]:
    """Return the public names of a module: `__all__`, or those that it defines and imports from our packages."""
    imported = import_module(module)
    listed: list[str] | None = getattr(imported, "__all__", None)
    return listed or [
        name
        for name, value in vars(imported).items()
        if not name.startswith("_")
        and (getattr(value, "__module__", "").startswith("kubefoundry") or get_origin(value) is dict)
    ]


PUBLIC = {
    f"{module}.{name}": getattr(import_module(module), name)
    for module in MODULES
    for name in names_of(module)
}


def members(value: Any) -> Iterator[Any]:
    """Yield the functions of a public name: itself, or the public methods and properties of a class."""
    if not inspect.isclass(value):
        yield value
        return
    for name, member in vars(value).items():
        if name.startswith("_") and name != "__init__":
            continue
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if inspect.isfunction(function):
            yield function


def hints(value: Any) -> Iterator[Any]:
    """Yield all types that the value of a public name mentions."""
    yield from get_args(value)
    if inspect.isclass(value):
        yield from value.__bases__
        yield from get_type_hints(value).values()
    for member in members(value):
        if inspect.isfunction(member):
            # what hypothesis wraps has globals of its own
            yield from get_type_hints(member, vars(import_module(member.__module__))).values()


def classes(hint: Any) -> Iterator[type]:
    """Yield the classes in a type, at any depth."""
    if inspect.isclass(hint) and not get_args(hint):
        yield hint
    for part in hint if isinstance(hint, list) else get_args(hint):
        yield from classes(part)


def private_types(value: Any) -> list[str]:
    """Return our own types that the value of a public name mentions, and that have no public name."""
    public = {item for item in PUBLIC.values() if inspect.isclass(item)}
    found = {mentioned for hint in hints(value) for mentioned in classes(hint)}
    return sorted(
        f"{item.__module__}.{item.__name__}"
        for item in found - public
        if item.__module__.startswith("kubefoundry")
    )


def private_aliases(value: Any) -> list[str]:
    """Return the aliases, such as of a Callable, in the annotations of a public name that have no public name."""
    public = {name.rpartition(".")[2] for name in PUBLIC}
    found = set()
    for item in (value, *members(value)):
        scope = vars(import_module(getattr(item, "__module__", "builtins")))
        for annotation in getattr(item, "__annotations__", {}).values():
            found |= {
                name
                for name in re.findall(r"[A-Za-z_][\w.]*", str(annotation))
                if get_origin(attribute(scope, name)) is not None
            }
    return sorted(name for name in found if name.rpartition(".")[2] not in public)


def attribute(scope: Mapping[str, Any], path: str) -> Any:
    """Return the value of a dotted name in a module; None if there is none."""
    first, *rest = path.split(".")
    value = scope.get(first)
    for name in rest:
        value = getattr(value, name, None)
    return value


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_mentions_only_public_types(name: str) -> None:
    assert private_types(PUBLIC[name]) == []


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_mentions_only_public_aliases(name: str) -> None:
    assert private_aliases(PUBLIC[name]) == []


class Private:
    """A type without a public name."""


class Base:
    """Mentions the type in each place."""

    field: dict[str, Private]

    @property
    def part(self) -> Private | None:
        """Return None."""

    def method(self, given: list[Private]) -> None:
        """Do nothing."""


class Derived(Private):
    """Has a private base."""


def returning() -> type[Private]:
    """Return the type."""
    return Private


Hidden = Callable[[], None]


def taking(hidden: Hidden) -> None:
    """Mention an alias."""


def test_private_alias_is_found() -> None:
    assert private_aliases(taking) == ["Hidden"]


def test_private_type_is_found_in_each_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Private, "__module__", "kubefoundry_sdk._api")

    for value in (Derived, returning, Base.method, dict[str, Private]):
        assert private_types(value) == ["kubefoundry_sdk._api.Private"]
    assert sum(Private in set(classes(hint)) for hint in hints(Base)) == 3
