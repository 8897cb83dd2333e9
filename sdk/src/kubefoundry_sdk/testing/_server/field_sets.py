"""Sets of fields in the form of `fieldsV1`: `{"f:spec": {".": {}, "f:replicas": {}}}`.

A node is a member of the set if it is empty or has the key `.`; otherwise only nodes below it are. The operations are
those of structured-merge-diff (fieldpath.Set).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

Fields = Mapping[str, Any]

MEMBER: Final = "."


def field_step(name: str) -> str:
    """Return the path element of a map's key."""
    return f"f:{name}"


def value_step(value: Any) -> str:
    """Return the path element of an item of a set."""
    return f"v:{_text(value)}"


def key_step(keys: Mapping[str, Any]) -> str:
    """Return the path element of an item of a list-map."""
    return f"k:{_text(dict(sorted(keys.items())))}"


def has(fields: Fields, step: str) -> bool:
    """Check whether the node of that path element is a member."""
    return step in fields and _is_member(fields[step])


def below(fields: Fields, step: str) -> Fields:
    """Return the set below a path element, empty if there is none."""
    return {key: node for key, node in fields.get(step, {}).items() if key != MEMBER}


def inserted(fields: Fields, path: Sequence[str]) -> Fields:
    """Return the set with one more member. The empty path changes nothing."""
    if not path:
        return fields
    return union(fields, _chain(path))


def union(left: Fields, right: Fields) -> Fields:
    """Return the members of either set."""
    both = {**left, **right}
    for step in left.keys() & right.keys():
        both[step] = _node(
            union(_children(left[step]), _children(right[step])),
            _is_member(left[step]) or _is_member(right[step]),
        )
    return both


def intersection(left: Fields, right: Fields) -> Fields:
    """Return the members of both sets."""
    common = {}
    for step in left.keys() & right.keys():
        node = _node(
            intersection(_children(left[step]), _children(right[step])),
            _is_member(left[step]) and _is_member(right[step]),
        )
        if node is not None:
            common[step] = node
    return common


def difference(left: Fields, right: Fields) -> Fields:
    """Return the members of the left set that are not in the right one."""
    rest = {}
    for step, node in left.items():
        if step not in right:
            rest[step] = node
            continue
        kept = _node(
            difference(_children(node), _children(right[step])),
            _is_member(node) and not _is_member(right[step]),
        )
        if kept is not None:
            rest[step] = kept
    return rest


def outside(fields: Fields, excluded: Fields) -> Fields:
    """Return the members that are neither members of the other set nor below one."""
    rest = {}
    for step, node in fields.items():
        if step in excluded and _is_member(excluded[step]):
            continue
        kept = _node(outside(_children(node), _children(excluded.get(step, {}))), _is_member(node))
        if kept is not None:
            rest[step] = kept
    return rest


def paths(fields: Fields, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all members."""
    found = []
    for step, node in fields.items():
        path = (*prefix, step)
        if _is_member(node):
            found.append(path)
        found.extend(paths(_children(node), path))
    return found


def shown(path: Sequence[str]) -> str:
    """Return a path as the API server writes it in messages: `.spec.conditions[type="Ready"].status`."""
    text = ""
    for step in path:
        kind, content = step[0], step[2:]
        if kind == "f":
            text += f".{content}"
        elif kind == "k":
            pairs = ",".join(f"{key}={_text(value)}" for key, value in json.loads(content).items())
            text += f"[{pairs}]"
        else:
            text += f"[={content}]"
    return text


def _chain(path: Sequence[str]) -> Fields:
    node: Fields = {}
    for step in reversed(path):
        node = {step: node}
    return node


def _is_member(node: Fields) -> bool:
    return not node or MEMBER in node


def _children(node: Fields) -> Fields:
    return {step: child for step, child in node.items() if step != MEMBER} if MEMBER in node else node


def _node(children: Fields, member: bool) -> Fields | None:
    """Return the node, or None if neither it nor anything below it is a member."""
    if not children:
        return {} if member else None
    return {MEMBER: {}, **children} if member else children


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
