"""Parses the text of a rule, within limits that keep every later step short.

The limits were measured (sources §6.1); Kubernetes' own would admit rules that cel-python evaluates for minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from celpy import Environment
from celpy.celparser import CELParseError
from lark import Token, Tree
from lark.exceptions import UnexpectedToken

MAX_LENGTH: Final = 1024
"""Characters of a rule; the CRD's maxLength, too."""
MAX_NODES: Final = 300
"""Nodes of the grammar's parse tree; the longest shipped rule has 80."""
MAX_MACRO_NESTING: Final = 2
"""Nested macros, including the outer one."""

MACROS: Final = frozenset({"all", "exists", "exists_one", "filter", "map"})

Node = Tree[Token]

_ESCAPES: Final = frozenset("abfnrtv\"'\\xuU0123")
_CHAINS: Final = frozenset(
    {"expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication", "unary", "member"}
)
_PARSER: Final = Environment().cel_parser


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a rule and its place: line and column, starting at 1."""

    column: int
    text: str
    line: int = 1

    def __str__(self) -> str:
        place = f"column {self.column}" if self.line == 1 else f"line {self.line}, column {self.column}"
        return f"{place}: {self.text}"


class BadSource(Exception):
    """The text is not a rule, or exceeds a limit."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def parse(text: str) -> Node:
    """Return the syntax tree of a rule, without the grammar's single-child nodes.

    Raise BadSource, with the place of the first problem, if the text is not a rule or exceeds a limit.
    """
    if len(text) > MAX_LENGTH:
        raise BadSource(
            Problem(1, f"the rule is {len(text)} characters long, at most {MAX_LENGTH} are allowed")
        )
    _check_literals(text)
    try:
        tree = cast(Node, _PARSER.parse(text))
    except CELParseError as error:
        raise BadSource(_syntax_problem(error, text)) from None
    nodes = sum(1 for _ in tree.iter_subtrees())
    if nodes > MAX_NODES:
        raise BadSource(Problem(1, f"the rule has {nodes} syntax nodes, at most {MAX_NODES} are allowed"))
    _check_nesting(tree, 0)
    return _collapsed(tree)


def place(node: Node | Token) -> tuple[int, int]:
    """Return the column and line at which a node begins."""
    if isinstance(node, Token):
        return node.column or 1, node.line or 1
    return (1, 1) if node.meta.empty else (node.meta.column, node.meta.line)


def _syntax_problem(error: CELParseError, text: str) -> Problem:
    cause = error.__context__
    if isinstance(cause, UnexpectedToken) and cause.token.type == "$END":
        return Problem(len(text) + 1, "syntax error: the rule ends too early")
    column, line = error.column or 1, error.line or 1
    rest = text.split("\n")[line - 1][column - 1 :].split(maxsplit=1)
    return Problem(column, f"syntax error at '{rest[0][:20]}'" if rest else "syntax error", line)


def _check_literals(text: str) -> None:
    """Check that string literals end, and contain only valid escapes.

    cel-python's token pattern is ambiguous for backslashes: an unterminated string with thirty escapes keeps its
    lexer busy for minutes, so it must never see one.
    """
    position = 0
    while position < len(text):
        if text.startswith("//", position):
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        elif text[position] in "\"'":
            position = _literal_end(text, position)
        else:
            position += 1


def _literal_end(text: str, start: int) -> int:
    quote = text[start]
    long = text.startswith(quote * 3, start)
    closing = quote * 3 if long else quote
    raw = _is_raw(text, start)
    position = start + len(closing)
    while position < len(text):
        if text[position] == "\\":
            if not raw and text[position + 1 : position + 2] not in _ESCAPES:
                raise BadSource(_problem_at(text, position, "unknown escape in a string"))
            position += 2
        elif text.startswith(closing, position):
            return position + len(closing)
        elif text[position] in "\r\n":
            # in a long string, too: cel-python drops the line break from its value
            raise BadSource(_problem_at(text, start, "a string must end on its line; write \\n"))
        else:
            position += 1
    raise BadSource(_problem_at(text, start, "the string does not end"))


def _is_raw(text: str, quote: int) -> bool:
    prefix = quote
    while prefix > 0 and (text[prefix - 1].isalnum() or text[prefix - 1] == "_"):
        prefix -= 1
    return text[prefix:quote].lower() in ("r", "br")


def _problem_at(text: str, position: int, message: str) -> Problem:
    before = text[:position]
    return Problem(position - (before.rfind("\n") + 1) + 1, message, before.count("\n") + 1)


def _check_nesting(node: Node, depth: int) -> None:
    """Check the nesting of macros. A tree is at most MAX_NODES deep, so recursion is safe here."""
    for child in node.children:
        if not isinstance(child, Tree):
            continue
        inside = depth
        if node.data == "member_dot_arg" and child.data == "exprlist" and node.children[1] in MACROS:
            inside = depth + 1
            if inside > MAX_MACRO_NESTING:
                column, line = place(cast(Token, node.children[1]))
                raise BadSource(
                    Problem(column, f"macros may be nested {MAX_MACRO_NESTING} deep, not deeper", line)
                )
        _check_nesting(child, inside)


def _collapsed(node: Node) -> Node:
    """Return the tree without chains of single children: a quarter of the steps to evaluate, the same meaning."""
    while (inner := _only_child(node)) is not None:
        node = inner
    children: list[Any] = [_collapsed(c) if isinstance(c, Tree) else c for c in node.children]
    return Tree(node.data, children, node.meta)


def _only_child(node: Node) -> Node | None:
    child = node.children[0] if len(node.children) == 1 else None
    if not isinstance(child, Tree):
        return None
    if node.data in _CHAINS:
        return child
    return cast(Node, child.children[0]) if child.data == "paren_expr" else None
