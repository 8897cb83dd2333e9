"""The paths that a rule reads, such as `spec.engine.type`: for messages, and to show the values behind a decision."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from lark import Token, Tree

from kubefoundry_sdk._cel.source import Node

_STEP: Final = re.compile(r"\.?(?P<field>[A-Za-z_]\w*)|\['(?P<key>[^']*)'\]", re.ASCII)


def path_of(node: Any) -> str | None:
    """Return a chain of constant selections as text; None for any other expression."""
    match node:
        case Tree(data="primary", children=[Tree(data="ident", children=[name])]):
            return str(name)
        case Tree(data="member_dot", children=[operand, field]):
            path = path_of(operand)
            return f"{path}.{field}" if path else None
        case Tree(data="member_index", children=[operand, key]):
            path, text = path_of(operand), constant(cast(Node, key))
            return f"{path}['{text}']" if path and text is not None else None
    return None


def steps_of(path: str) -> tuple[str, ...]:
    """Return the fields and keys of a path, so that `spec.image` and `spec['image']` are the same."""
    return tuple(step["field"] if step["key"] is None else step["key"] for step in _STEP.finditer(path))


def constant(node: Node) -> str | None:
    """Return the text of a plain string literal without escapes and quotes; None for any other expression."""
    match node:
        case Tree(
            data="primary", children=[Tree(data="literal", children=[Token(type="STRING_LIT") as token])]
        ):
            text = str(token)[1:-1]
            return text if token[0] in "'\"" and not set(text) & {"\\", "'"} else None
    return None


def paths_in(tree: Node, roots: frozenset[str]) -> tuple[str, ...]:
    """Return the longest constant paths that start at a variable, in order of appearance."""
    paths: dict[str, None] = {}

    def walk(node: Any) -> None:
        if not isinstance(node, Tree):
            return
        path = path_of(node)
        if path is None:
            for child in node.children:
                walk(child)
        elif steps_of(path)[0] in roots:
            paths[path] = None

    walk(tree)
    return tuple(paths)


def value_at(path: str, environment: Mapping[str, Any]) -> Any:
    """Return the JSON value at a path, or None if a part of it is absent."""
    value: Any = environment
    for name in steps_of(path):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value
