"""Checks a rule before it runs: unknown fields, variables and functions, and wrong types.

The variables of macros have types, so `spec.tolerations.exists(t, …)` is checked. Dynamic parts are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, cast

from lark import Token, Tree

from kubefoundry_sdk._cel.functions import FUNCTIONS, METHODS, TYPE_NAMES, Function
from kubefoundry_sdk._cel.overloads import (
    NUMBERS,
    Mismatch,
    arithmetic,
    check_relation,
    comparable,
    fits,
    joined,
    name_of,
)
from kubefoundry_sdk._cel.paths import constant, path_of
from kubefoundry_sdk._cel.schema import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    TYPE,
    UINT,
    VARIABLES,
    Dynamic,
    ListOf,
    MapOf,
    Record,
    Type,
)
from kubefoundry_sdk._cel.source import MACROS, Node, Problem, place

_LITERALS: Final[Mapping[str, Type]] = {
    "INT_LIT": INT,
    "UINT_LIT": UINT,
    "FLOAT_LIT": DOUBLE,
    "STRING_LIT": STRING,
    "MLSTRING_LIT": STRING,
    "BOOL_LIT": BOOL,
    "NULL_LIT": NULL,
}


class Finding(Exception):
    """The first problem of a rule; later ones often follow from it."""

    def __init__(self, at: Node | Token, text: str) -> None:
        column, line = place(at)
        super().__init__(text)
        self.problem = Problem(column, text, line)


Scope = Mapping[str, Type]


def lint(tree: Node) -> Problem | None:
    """Return the first problem of a rule, or None. A rule must return a bool."""
    try:
        _expect(BOOL, tree, VARIABLES, "the rule returns {}, not a bool")
    except Finding as finding:
        return finding.problem
    return None


def infer(node: Node, scope: Scope) -> Type:
    """Return the type of an expression. Raise Finding for its first problem."""
    return _INFER[node.data](node, scope)


def _children(node: Node) -> list[Node]:
    return cast(list[Node], node.children)


def _expect(expected: Type, node: Node, scope: Scope, text: str) -> None:
    actual = infer(node, scope)
    if not fits(actual, expected):
        raise Finding(node, text.format(name_of(actual)))


def _ternary(node: Node, scope: Scope) -> Type:
    condition, *branches = _children(node)
    _expect(BOOL, condition, scope, "the condition before '?' is {}, not a bool")
    kinds = [infer(branch, scope) for branch in branches]
    if not comparable(*kinds):
        raise Finding(branches[1], f"the choices of '?:' differ: {name_of(kinds[0])} and {name_of(kinds[1])}")
    return joined(kinds)


def _logic(node: Node, scope: Scope) -> Type:
    for side in _children(node):
        _expect(BOOL, side, scope, "&& and || need bools, this is {}")
    return BOOL


def _relation(node: Node, scope: Scope) -> Type:
    side, right = _children(node)
    left_type, right_type = infer(_children(side)[0], scope), infer(right, scope)
    try:
        check_relation(str(side.data), left_type, right_type)
    except Mismatch as mismatch:
        raise Finding(right, str(mismatch)) from None
    return BOOL


def _arithmetic(node: Node, scope: Scope) -> Type:
    side, right = _children(node)
    left_type, right_type = infer(_children(side)[0], scope), infer(right, scope)
    try:
        return arithmetic(str(side.data), left_type, right_type)
    except Mismatch as mismatch:
        raise Finding(right, str(mismatch)) from None


def _unary(node: Node, scope: Scope) -> Type:
    sign, operand = _children(node)
    if sign.data == "unary_not":
        _expect(BOOL, operand, scope, "'!' needs a bool, this is {}")
        return BOOL
    kind = infer(operand, scope)
    if not isinstance(kind, Dynamic) and kind not in (INT, DOUBLE):
        raise Finding(operand, f"'-' needs a number, this is {name_of(kind)}")
    return kind


def _select(node: Node, scope: Scope) -> Type:
    operand, field = cast(tuple[Node, Token], tuple(node.children))
    return _field(infer(operand, scope), operand, str(field), field)


def _field(kind: Type, operand: Node, name: str, at: Node | Token) -> Type:
    match kind:
        case Record(fields) if name in fields:
            return fields[name]
        case Record(fields):
            where = path_of(operand) or "this object"
            raise Finding(at, f"no field '{name}' in {where}{_like(name, fields)}")
        case MapOf(value):
            return value
        case Dynamic():
            return DYN
    raise Finding(at, f"no field '{name}' in {name_of(kind)}")


def _index(node: Node, scope: Scope) -> Type:
    operand, key = _children(node)
    kind, key_kind = infer(operand, scope), infer(key, scope)
    match kind:
        case ListOf(item):
            if not isinstance(key_kind, Dynamic) and key_kind not in NUMBERS:
                raise Finding(key, f"a list is indexed by a number, this is {name_of(key_kind)}")
            return item
        case MapOf() | Record():
            if not fits(key_kind, STRING):
                raise Finding(key, f"a map is indexed by a string, this is {name_of(key_kind)}")
            if isinstance(kind, MapOf):
                return kind.value
            name = constant(key)
            return DYN if name is None else _field(kind, operand, name, key)
        case Dynamic():
            return DYN
    raise Finding(operand, f"{name_of(kind)} has no elements")


def _arguments(node: Node) -> list[Node]:
    last = node.children[-1]
    return _children(last) if isinstance(last, Tree) and last.data == "exprlist" else []


def _method(node: Node, scope: Scope) -> Type:
    receiver, name, arguments = _children(node)[0], cast(Token, node.children[1]), _arguments(node)
    if name in MACROS:
        return _macro(receiver, name, arguments, scope)
    if name not in METHODS:
        raise Finding(name, f"unknown function '{name}'{_like(name, {*METHODS, *MACROS})}")
    return _call(METHODS[name], name, [receiver, *arguments], scope, hidden=1)


def _call(function: Function, name: Token, arguments: list[Node], scope: Scope, hidden: int = 0) -> Type:
    most = len(function.parameters)
    if not most - function.optional <= len(arguments) <= most:
        raise Finding(name, f"{name}() takes {most - hidden} arguments, not {len(arguments) - hidden}")
    for argument, expected in zip(arguments, function.parameters, strict=False):
        _expect(expected, argument, scope, f"{name}() needs {name_of(expected)}, this is {{}}")
    return function.result


def _macro(receiver: Node, name: Token, arguments: list[Node], scope: Scope) -> Type:
    kind = infer(receiver, scope)
    if len(arguments) not in ((2, 3) if name == "map" else (2,)):
        raise Finding(name, f"{name}() takes a variable and an expression")
    item = _item(kind)
    if item is None:
        raise Finding(receiver, f"{name}() needs a list or a map, this is {name_of(kind)}")
    variable, *bodies = arguments
    ident = path_of(variable)
    if variable.data != "primary" or ident is None:
        raise Finding(variable, f"the first argument of {name}() must be a plain name")
    inner = {**scope, ident: item}
    if name != "map" or len(bodies) == 2:
        _expect(BOOL, bodies[0], inner, f"the expression of {name}() gives {{}}, not a bool")
    if name == "filter":
        return ListOf(item)
    return ListOf(infer(bodies[-1], inner)) if name == "map" else BOOL


def _item(kind: Type) -> Type | None:
    """Return the type of the variable of a macro, None if it cannot iterate over this type."""
    match kind:
        case ListOf(element):
            return element
        case MapOf() | Record():
            return STRING
    return DYN if isinstance(kind, Dynamic) else None


def _primary(node: Node, scope: Scope) -> Type:
    child = _children(node)[0]
    match child.data, child.children:
        case "ident", [name]:
            return _variable(cast(Token, name), scope)
        case "literal", [token]:
            return _literal(cast(Token, token))
        case "list_lit", items:
            return ListOf(joined(infer(item, scope) for item in _arguments(child)) if items else DYN)
        case "map_lit", inits:
            return _map(_children(cast(Node, inits[0])) if inits else [], scope)
        case "ident_arg", [name, *_]:
            return _function(cast(Token, name), _arguments(child), scope)
    raise Finding(node, "a leading '.' is not supported")


def _map(parts: list[Node], scope: Scope) -> Type:
    keys = [infer(key, scope) for key in parts[0::2]]
    values = [infer(value, scope) for value in parts[1::2]]
    return MapOf(joined(values)) if keys and all(key == STRING for key in keys) else DYN


def _variable(name: Token, scope: Scope) -> Type:
    if name in scope:
        return scope[name]
    if name in TYPE_NAMES:
        return TYPE
    raise Finding(name, f"unknown variable '{name}'{_like(name, scope)}")


def _literal(token: Token) -> Type:
    if token.type not in _LITERALS:
        raise Finding(token, "bytes are not supported in rules")
    return _LITERALS[token.type]


def _function(name: Token, arguments: list[Node], scope: Scope) -> Type:
    if name == "has":
        if len(arguments) != 1 or arguments[0].data != "member_dot":
            raise Finding(name, "has() needs one field selection, as has(spec.resources.gpu)")
        infer(arguments[0], scope)
        return BOOL
    if name == "dyn":
        if len(arguments) != 1:
            raise Finding(name, "dyn() takes one argument")
        infer(arguments[0], scope)
        return DYN
    if name not in FUNCTIONS:
        raise Finding(name, f"unknown function '{name}'{_like(name, {*FUNCTIONS, 'has', 'dyn'})}")
    return _call(FUNCTIONS[name], name, arguments, scope)


def _like(name: str, candidates: Iterable[str]) -> str:
    close = get_close_matches(name, list(candidates), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def _refused(node: Node, _: Scope) -> Type:
    raise Finding(node, "messages of other types cannot be built in rules")


_INFER: Final[Mapping[Any, Callable[[Node, Scope], Type]]] = {
    "expr": _ternary,
    "conditionalor": _logic,
    "conditionaland": _logic,
    "relation": _relation,
    "addition": _arithmetic,
    "multiplication": _arithmetic,
    "unary": _unary,
    "member_dot": _select,
    "member_dot_arg": _method,
    "member_index": _index,
    "member_object": _refused,
    "primary": _primary,
}
