"""Find the spec field that an upstream value comes from: change one field, and render again.

This also works for third-party providers, because a provider has nothing to declare.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_cli.spec_path import ABSENT, with_value
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.structure import Schema
from kubefoundry_sdk._api.validation import default, schema, validate
from kubefoundry_sdk._provider.write.documents import at

_BY_PLACE: Final = re.compile(r"\[\d+\]\Z")

_FLAG: Final = re.compile(r"--?[A-Za-z]")
"""The beginning of a flag; `-1` is a value."""

Path = tuple[str, ...]
Leaves = dict[Path, Any]

Render = Callable[[Object], Leaves | None]
"""Returns all rendered values of a spec, None if the spec is refused."""


def leaves(value: Any, path: Path = (), *, flags: bool = False) -> Leaves:
    """Return all leaf values by path. List items are named by `name` if all names are distinct, else by index.

    Args:
        value: The value.
        path: The path of the value itself.
        flags: Whether to return command-line arguments as one value per flag. An extra flag then shifts no other
            value, but the order of the arguments is lost.
    """
    if flags and (arguments := by_flag(value)) is not None:
        return {(*path, f"[{flag}]"): words for flag, words in arguments.items()}
    if not (children := _children(value)):
        return {path: value}
    return {
        leaf_path: leaf
        for step, child in children
        for leaf_path, leaf in leaves(child, (*path, step), flags=flags).items()
    }


def _children(value: Any) -> list[tuple[str, Any]]:
    """Return the fields of a map or the items of a list, each with its step of the path."""
    if isinstance(value, Mapping):
        return [(str(key), item) for key, item in value.items()]
    if isinstance(value, list):
        return [(f"[{mark}]", item) for mark, item in zip(_marks(value), value, strict=True)]
    return []


def by_flag(value: Any) -> dict[str, str] | None:
    """Return the values of a list of command-line arguments by flag, None for any other list.

    A flag without a value is its own value. Words before the first flag are listed by index. A repeated flag gets a
    number: `--name#2`.
    """
    if not _is_command_line(value):
        return None
    by_name: dict[str, list[str]] = {}
    current = None
    for place, word in enumerate(value):
        if _FLAG.match(word):
            name, equals, inline = word.partition("=")
            repeats = sum(key.partition("#")[0] == name for key in by_name)
            current = f"{name}#{repeats + 1}" if repeats else name
            by_name[current] = [inline] if equals else []
        elif current is None:
            by_name[str(place)] = [word]
        else:
            by_name[current].append(word)
    return {flag: " ".join(words) if words else flag for flag, words in by_name.items()}


def _is_command_line(value: Any) -> bool:
    is_text = isinstance(value, list) and all(isinstance(word, str) for word in value)
    return is_text and any(map(_FLAG.match, value))


def text(path: Path) -> str:
    """Return the path as text: `spec.args[3]`."""
    return ".".join(path).replace(".[", "[")


@dataclass(frozen=True, slots=True)
class Origins:
    """The spec fields that upstream values come from.

    Attributes:
        follows: The spec fields that each upstream value follows, for example `engine.contextLength`.
        rigid: Fields, with their values, that cannot change without other fields (`serving.mode`). An upstream value
            that follows no field is attributed to them.
    """

    follows: Mapping[Path, Sequence[str]]
    rigid: Mapping[str, Any]


def origins(spec: Object, render: Render) -> Origins:
    """Change each field of the spec in turn, and collect the upstream values that change."""
    spec = default(spec)
    base = render(spec) or {}
    follows: dict[Path, list[str]] = {}
    rigid: dict[str, Any] = {}
    for path in _settable(spec):
        accepted = list(_accepted(spec, path, render))
        if not accepted:
            rigid[text(path)] = at(spec, path)
        for place in set[Path]().union(*(differing(base, values) for values in accepted)):
            follows.setdefault(place, []).append(text(path))
    return Origins(follows, rigid)


def _accepted(spec: Object, path: Path, render: Render) -> Iterator[Leaves]:
    """Yield the upstream values of the valid specs that differ in this field alone."""
    others = [default(other) for other in _alternatives(spec, path) if not validate(other)]
    for other in others:
        values = None if other == spec else render(other)
        if values is not None:
            yield values


def below(values: Leaves, place: str) -> Leaves:
    """Return the values at or below a path of `drift.differences`.

    Such a path has the index of an argument. If no value has that path, return all arguments of the list.
    """
    exact = at_or_below(values, place)
    arguments = _BY_PLACE.sub("", place)
    return exact or (at_or_below(values, arguments) if arguments != place else {})


def at_or_below(values: Leaves, place: str) -> Leaves:
    """Return the values at or below a path."""
    return {path: value for path, value in values.items() if is_within(text(path), place)}


def is_within(path: str, place: str) -> bool:
    """Check whether the path is the place, or below it."""
    return path == place or path.startswith((f"{place}.", f"{place}["))


def differing(left: Leaves, right: Leaves) -> set[Path]:
    """Return the paths at which the two do not have the same value, on either side.

    The SDK's `drift` is separate: it compares only a manifest's values, and ignores values that an upstream adds.
    """
    return {path for path in left.keys() | right.keys() if left.get(path, ABSENT) != right.get(path, ABSENT)}


def _marks(items: list[Any]) -> list[str]:
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    distinct = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    return [str(name) for name in names] if distinct else [str(index) for index in range(len(items))]


def alternatives(spec: Object) -> Iterator[Object]:
    """Yield specs that differ in one field that is set; not all of them are valid."""
    spec = default(spec)
    for path in _settable(spec):
        yield from _alternatives(spec, path)


def _settable(spec: Object) -> list[Path]:
    """Return the paths of the fields that are set. A list or a free map is one field."""
    return list(_fields(spec, schema(), ()))


def _fields(value: Any, shape: Schema, path: Path) -> Iterator[Path]:
    properties = shape.get("properties")
    if not isinstance(value, Mapping) or not properties:
        yield path
        return
    for key, item in value.items():
        yield from _fields(item, properties.get(key, {}), (*path, key))


def _alternatives(spec: Object, path: Path) -> Iterator[Object]:
    """Yield specs that differ in this field alone: without it, and with other values of its type."""
    yield with_value(spec, path, ABSENT)
    for value in _other_values(at(spec, path), _shape(path)):
        yield with_value(spec, path, value)


def _other_values(value: Any, shape: Schema) -> list[Any]:
    """Return other values of the same type."""
    if shape.get("enum"):
        return [choice for choice in shape["enum"] if choice != value]
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1, value - 1]
        case str():
            return [f"{value}1", f"1{value}"]
        case list():
            return [value[:-1], [*value[:-1], *_changed(value[-1:])]]
        case Mapping():
            return _with_changed_entry(value)
        case _:
            return []


def _with_changed_entry(value: Mapping[str, Any]) -> list[Any]:
    """Return the mapping with another value of each of its entries in turn."""
    return [{**value, key: changed} for key, item in value.items() for changed in _changed([item])]


def _changed(items: list[Any]) -> list[Any]:
    """Return the items with other values. Empty items are left out. Only texts and objects change."""
    return [_other(item) for item in items if item]


def _other(item: Any) -> Any:
    if isinstance(item, str):
        return f"{item}1"
    return {**item, "value": "1"} if isinstance(item, Mapping) else item


def _shape(path: Path) -> Schema:
    place: Schema = schema()
    for step in path:
        place = place.get("properties", {}).get(step, {})
    return place
