"""The operations of server-side apply on values: merge, compare, remove, and the fields of a value.

A port of structured-merge-diff (typed). Everything is a pure function; `Absent` stands for no value, None for null.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk.testing._server import field_sets
from kubefoundry_sdk.testing._server.field_sets import Fields, field_step, key_step, value_step
from kubefoundry_sdk.testing._server.types import ListOf, MapType, Type


class _Absent:
    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent()

UNDECLARED: Final = "field not declared in schema"
"""The end of the message about an unknown field."""


class Untypable(ValueError):
    """A value does not fit its type; the text is the API server's."""


def check(value: Any, kind: Type, path: str = "", *, duplicates: bool = False) -> Iterator[str]:
    """Yield the reasons for which a value does not fit the type; repeated items do if `duplicates` is set."""
    handler = kind.handler(value)
    if value is None:
        return
    if isinstance(handler, MapType):
        if not isinstance(value, dict):
            yield f"{path}: expected map, got {_shown(value)}"
            return
        for name, child in value.items():
            child_type = handler.of(name)
            if child_type is None:
                yield f"{path}.{name}: {UNDECLARED}"
            else:
                yield from check(child, child_type, f"{path}.{name}", duplicates=duplicates)
    elif isinstance(handler, ListOf):
        if not isinstance(value, list):
            yield f"{path}: expected list, got {_shown(value)}"
            return
        yield from _check_items(value, handler, path, duplicates)
    elif handler is not None and not _is_scalar(value, handler):
        yield f"{path}: expected {handler}, got {_shown(value)}"


def _check_items(items: list[Any], kind: ListOf, path: str, duplicates: bool) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(items):
        place = f"{path}[{index}]"
        if kind.relation != "atomic":
            try:
                step = item_step(item, kind)
            except Untypable as error:
                yield f"{path}: element {index}: {error}"
                continue
            if step in seen and not duplicates:
                yield f"{path}: duplicate entries for key {field_sets.shown([step])}"
            seen.add(step)
            place = path + field_sets.shown([step])
        yield from check(item, kind.items, place, duplicates=duplicates)


def item_step(item: Any, kind: ListOf) -> str:
    """Return the path element of an item. Raise Untypable if it has none."""
    if kind.relation == "set":
        if isinstance(item, dict | list) or item is None:
            raise Untypable("associative list without keys has an element that's no scalar")
        return value_step(item)
    if not isinstance(item, dict):
        raise Untypable("associative list with keys may not have non-map elements")
    defaults = kind.items.map.defaults if kind.items.map else {}
    keys = {key: item.get(key, defaults.get(key)) for key in kind.keys if key in item or key in defaults}
    if not keys:
        named = json.dumps(list(kind.keys)).replace(",", "")
        raise Untypable(
            f"associative list with keys has an element that omits all key fields {named} "
            "(and doesn't have default values for any key fields)"
        )
    return key_step(keys)


def fields_of(value: Any, kind: Type | None) -> Fields:
    """Return the set of all fields of a value (TypedValue.ToFieldSet)."""
    owned: dict[str, Any] = {}
    handler = kind.handler(value) if kind else None
    if isinstance(handler, MapType) and isinstance(value, dict):
        for name, child in value.items():
            is_leaf = child is None or child == {} or name not in handler.fields
            _add(owned, field_step(name), child, handler.of(name), is_leaf)
    elif isinstance(handler, ListOf) and isinstance(value, list):
        for item in value:
            _add(owned, item_step(item, handler), item, handler.items, True)
    return owned


def _add(owned: dict[str, Any], step: str, child: Any, kind: Type | None, is_leaf: bool) -> None:
    handler = kind.handler(child) if kind else None
    if _is_whole(handler):
        owned[step] = {}
        return
    node = dict(fields_of(child, kind))
    if node and is_leaf:
        node = {".": {}, **node}
    if node or is_leaf:
        owned[step] = node


def _is_whole(handler: MapType | ListOf | str | None) -> bool:
    """Check whether a value has one owner: a scalar, or an atomic map or list."""
    if isinstance(handler, MapType):
        return handler.atomic
    if isinstance(handler, ListOf):
        return handler.relation == "atomic"
    return True


def merge(live: Any, applied: Any, kind: Type | None) -> Any:
    """Return the live value with an applied one merged into it (TypedValue.Merge)."""
    if applied is ABSENT:
        return live
    if live is ABSENT and not isinstance(applied, dict | list):
        return applied
    handler = kind.handler(applied if applied is not None else live) if kind else None
    if _is_leaf(handler, live, applied):
        return applied
    if isinstance(handler, MapType):
        left, right = _of_type(live, dict), _of_type(applied, dict)
        return {
            name: merge(left.get(name, ABSENT), right.get(name, ABSENT), handler.of(name))
            for name in left | right
        }
    assert isinstance(handler, ListOf)
    return _merged_lists(_of_type(live, list), _of_type(applied, list), handler)


def _is_leaf(handler: MapType | ListOf | str | None, before: Any, after: Any) -> bool:
    """Check whether values have one owner, or are no map or list that has a part."""
    has_parts = any(isinstance(value, dict | list) and value for value in (before, after))
    return _is_whole(handler) or not has_parts


def _merged_lists(live: list[Any], applied: list[Any], kind: ListOf) -> list[Any]:
    """Merge two lists in the order of typed.mergingWalker.visitListItems."""
    left, right = [item_step(item, kind) for item in live], [item_step(item, kind) for item in applied]
    of_left, of_right = dict(zip(left, live, strict=True)), dict(zip(right, applied, strict=True))
    shared = [step for step in right if step in of_left]
    merged: set[str] = set()
    out, at_left, at_right = [], 0, 0
    while at_left < len(left) or at_right < len(right):
        if at_left < len(left):
            step = left[at_left]
            if at_right < len(right):
                if step == right[at_right]:
                    merged.add(step)
                    out.append(merge(of_left[step], of_right[step], kind.items))
                    at_left, at_right, shared = at_left + 1, at_right + 1, shared[1:]
                    continue
                if step in of_right and shared and shared[0] != step:
                    at_left += 1
                    continue
            if step not in of_right:
                out.append(live[at_left])
                at_left += 1
                continue
            if step in merged:
                at_left += 1
        if at_right < len(right):
            step = right[at_right]
            merged.add(step)
            out.append(merge(of_left.get(step, ABSENT), of_right[step], kind.items))
            at_right += 1
            if shared and shared[0] == step:
                shared = shared[1:]
    return out


@dataclass(slots=True)
class Comparison:
    """The fields that differ between two values."""

    added: Fields = field(default_factory=dict)
    modified: Fields = field(default_factory=dict)
    removed: Fields = field(default_factory=dict)


def compare(before: Any, after: Any, kind: Type | None) -> Comparison:
    """Return the fields that an update adds, changes and removes (TypedValue.Compare)."""
    result = Comparison()
    _compare(before, after, kind, (), result)
    return result


def _compare(before: Any, after: Any, kind: Type | None, path: tuple[str, ...], result: Comparison) -> None:
    if (
        before == after
        and isinstance(before, dict | list)
        and marshal.dumps(before, 2) == marshal.dumps(after, 2)
    ):
        return
    left, right = (kind.handler(value) if kind and value is not ABSENT else None for value in (before, after))
    handler = left if after is ABSENT else right
    if before is not ABSENT and after is not ABSENT and left is not right:
        # A value of another type: everything of the one is removed, everything of the other added.
        _compare_as(before, after, left, path, result)
    _compare_as(before, after, handler, path, result)


def _compare_as(
    before: Any,
    after: Any,
    handler: MapType | ListOf | str | None,
    path: tuple[str, ...],
    result: Comparison,
) -> None:
    if _is_leaf(handler, before, after):
        _compare_leaf(before, after, path, result)
        return
    if isinstance(handler, MapType):
        left, right = _of_type(before, dict), _of_type(after, dict)
        for name in left | right:
            _compare(
                left.get(name, ABSENT),
                right.get(name, ABSENT),
                handler.of(name),
                (*path, field_step(name)),
                result,
            )
    elif isinstance(handler, ListOf):
        left = {item_step(item, handler): item for item in _of_type(before, list)}
        right = {item_step(item, handler): item for item in _of_type(after, list)}
        for step in left | right:
            _compare(left.get(step, ABSENT), right.get(step, ABSENT), handler.items, (*path, step), result)
    if before is ABSENT:
        result.added = field_sets.inserted(result.added, path)
    elif after is ABSENT:
        result.removed = field_sets.inserted(result.removed, path)


def _compare_leaf(before: Any, after: Any, path: tuple[str, ...], result: Comparison) -> None:
    if before is ABSENT:
        result.added = field_sets.inserted(result.added, path)
    elif after is ABSENT:
        result.removed = field_sets.inserted(result.removed, path)
    elif not same(before, after):
        result.modified = field_sets.inserted(result.modified, path)


def _of_type(value: Any, kind: type) -> Any:
    return value if isinstance(value, kind) else kind()


def remove(value: Any, fields: Fields, kind: Type | None) -> Any:
    """Return the value without these fields; None if nothing of it is left (TypedValue.RemoveItems)."""
    handler = kind.handler(value) if kind else None
    if isinstance(handler, MapType) and not handler.atomic and isinstance(value, dict):
        kept: Any = {
            name: _rest(child, fields, field_step(name), handler.of(name))
            for name, child in value.items()
            if not field_sets.has(fields, field_step(name))
        }
        return kept or None
    if isinstance(handler, ListOf) and handler.relation != "atomic" and isinstance(value, list):
        kept = [
            _rest(item, fields, step, handler.items)
            for item in value
            if not field_sets.has(fields, step := item_step(item, handler))
        ]
        return kept or None
    return None if isinstance(value, dict | list) else value


def _rest(child: Any, fields: Fields, step: str, kind: Type | None) -> Any:
    subset = field_sets.below(fields, step)
    return remove(child, subset, kind) if subset else child


def with_named(fields: Fields, kind: Type | None) -> Fields:
    """Return the set with every declared field that has members below it (Set.EnsureNamedFieldsAreMembers)."""
    whole: dict[str, Any] = {}
    for step, node in fields.items():
        children = {key: child for key, child in node.items() if key != "."}
        child_type, declared = _below(step, kind)
        deeper = with_named(children, child_type)
        is_member = not children or "." in node or declared
        whole[step] = {".": {}, **deeper} if deeper and is_member else deeper
    return whole


def _below(step: str, kind: Type | None) -> tuple[Type | None, bool]:
    """Return the type at a path element, and whether the element is a declared field."""
    if kind is None:
        return None, False
    if step.startswith("f:") and kind.map:
        return kind.map.of(step[2:]), step[2:] in kind.map.fields
    if step.startswith("k:") and kind.list:
        return kind.list.items, False
    return None, False


def _is_scalar(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "numeric":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return not isinstance(value, dict | list)


def _shown(value: Any) -> str:
    return f"&value.valueUnstructured{{Value:{_go(value)}}}"


def _go(value: Any) -> str:
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{key}:{_go(child)}" for key, child in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go, value)) + "]"
    return json.dumps(value) if isinstance(value, str) else str(value)
