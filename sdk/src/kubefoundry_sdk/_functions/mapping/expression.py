"""CEL inside a mapping: `${…}` in templates, and conditions. Compiled once, evaluated within a budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, cast

from celpy.celtypes import BoolType, DoubleType, IntType, ListType, MapType, StringType, UintType
from celpy.evaluation import CELEvalError, re2  # type: ignore[attr-defined]  # re2 evaluates matches()
from lark import Tree

from kubefoundry_sdk._cel.evaluation import Budget, BudgetSpent, Evaluation
from kubefoundry_sdk._cel.lint import Finding, Scope, infer
from kubefoundry_sdk._cel.overloads import fits, name_of
from kubefoundry_sdk._cel.paths import path_of, steps_of, value_at
from kubefoundry_sdk._cel.schema import BOOL
from kubefoundry_sdk._cel.source import MACROS, BadSource, Node, parse
from kubefoundry_sdk._provider.results import Fault

MAX_STEPS: Final = 5000
"""Steps of all expressions of one call. A call for an ordinary mapping takes a few hundred."""

BRACES: Final = ": write the condition without ${ }"


class _Evaluation(Evaluation):
    def macro_has_eval(self, exprlist: Any) -> Any:
        """Evaluate has(): any field of the path may be absent, because a template leaves out what is not set."""
        value = super().macro_has_eval(exprlist)
        missing = isinstance(value, CELEvalError) and KeyError in value.args
        return BoolType(False) if missing else value


class Invalid(ValueError):
    """The mapping is invalid; the text has the path and the reason."""


def suggestion(name: str, choices: Iterable[str]) -> str:
    """Return ` (did you mean status?)`, empty if no choice is close."""
    close = get_close_matches(name, list(choices), 1)
    return f" (did you mean {close[0]}?)" if close else ""


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of one call, as JSON and as CEL values, and the steps left for it."""

    json: Mapping[str, Any]
    values: Mapping[str, Any]
    budget: Budget


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A compiled expression.

    Attributes:
        path: The path in the mapping file, for messages.
        reads: The steps of the paths whose values it reads, such as those of `spec.image`. `has()` and an index
            that is computed read only a part.
    """

    path: str
    tree: Node
    reads: tuple[tuple[str, ...], ...]

    def value(self, variables: Variables) -> Any:
        """Return the value as JSON; None if the expression reads a field that is not set.

        Raise Fault if it fails, takes too long, or has a value that JSON does not have.
        """
        if (field := path_of(self.tree)) is not None:
            return value_at(field, variables.json)
        return self._json(self._evaluate(variables))

    def holds(self, variables: Variables) -> bool:
        """Check whether the condition is true. It is not if it reads a field that is not set.

        Raise Fault if it fails, takes too long, or is not a bool.
        """
        value = self._evaluate(variables)
        if not isinstance(value, BoolType | None):
            raise Fault(f"{self.path}: it does not return a bool")
        return bool(value)

    def _evaluate(self, variables: Variables) -> Any:
        try:
            return _Evaluation(self.tree, variables.values, variables.budget).evaluate()
        except BudgetSpent as spent:
            raise Fault(f"{self.path}: {spent}") from spent
        except CELEvalError as error:
            hint = ""
            if KeyError in error.args:
                # Not for a field that an item of a list lacks: the whole list would be left out.
                read = path_of(error.tree)
                if read is not None and steps_of(read)[0] in variables.json:
                    return None
                hint = ": ask with has() or in first"
            raise Fault(f"{self.path}: {str(error.args[0])[:200]}{hint}") from error
        except Exception as error:  # cel-python raises ValueError, RecursionError and others (sources §6.1)
            raise Fault(f"{self.path}: {type(error).__name__}: {str(error)[:200]}") from error

    def _json(self, value: Any) -> Any:
        match value:
            case None:
                return None
            case BoolType():
                return bool(value)
            case IntType() | UintType():
                return int(value)
            case DoubleType() if math.isfinite(value):
                return float(value)
            case StringType():
                return str(value)
            case ListType():
                return [self._json(item) for item in value]
            case MapType() if all(isinstance(key, StringType) for key in value):
                return {str(key): self._json(part) for key, part in value.items() if part is not None}
        raise Fault(f"{self.path}: it returns {str(value)[:40]}, which JSON does not have")


def expression(text: str, path: str, scope: Scope, *, condition: bool = False) -> Expression:
    """Compile an expression.

    Raise Invalid if it is too large, is not CEL, or does not fit the types of the variables.
    """
    try:
        tree = parse(text)
        kind = infer(tree, scope)
        _check_patterns(tree)
    except (BadSource, Finding) as error:
        hint = BRACES if condition and "${" in text else ""
        raise Invalid(f"{path}: {error.problem}{hint}".replace("the rule", "the expression")) from error
    if condition and not fits(kind, BOOL):
        raise Invalid(f"{path}: the condition is {name_of(kind)}, not a bool")
    return Expression(path, tree, tuple(dict.fromkeys(_reads(tree, path, scope))))


def _check_patterns(tree: Node) -> None:
    """Raise Finding unless each pattern is a literal: a pattern of a user could hold the thread for minutes."""
    for node in tree.iter_subtrees():
        name, arguments = node.children[-2:] if len(node.children) > 1 else (None, None)
        if name != "matches" or node.data not in ("ident_arg", "member_dot_arg"):
            continue
        pattern = cast(Node, cast(Node, arguments).children[-1])
        literal = cast(Node, pattern.children[0])
        if pattern.data != "primary" or literal.data != "literal":
            raise Finding(pattern, "matches() needs a pattern in quotes")
        options = re2.Options()
        options.log_errors = False
        try:
            re2.compile(Evaluation(pattern, {}, Budget()).evaluate(), options)
        except re2.error as error:
            reason = error.args[0].decode(errors="replace")[:100]
            raise Finding(pattern, f"the pattern of matches() is invalid: {reason}") from error


def _check_variable(node: Node, path: str, scope: Scope) -> None:
    if node.data == "member_dot_arg" and node.children[1] in MACROS:
        variable = path_of(cast(Node, node.children[2]).children[0])
        if variable in scope:
            raise Invalid(f"{path}: the variable {variable} of {node.children[1]}() needs another name")


def _reads(node: Any, path: str, scope: Scope) -> Iterator[tuple[str, ...]]:
    """Yield the paths whose values an expression reads. Raise Invalid if a macro hides a variable of the mapping."""
    if not isinstance(node, Tree):
        return
    if (read := path_of(node)) is not None:
        if (steps := steps_of(read))[0] in scope:
            yield steps
        return
    children = node.children
    if node.data == "ident_arg" and children[0] == "has":
        return
    if node.data == "member_index" and path_of(children[0]) is not None:
        children = children[1:]
    _check_variable(node, path, scope)
    for child in children:
        yield from _reads(child, path, scope)


def split(text: str, path: str) -> list[tuple[str, bool]]:
    """Return the parts of a text, each with whether it is an expression. `$${` stands for `${`.

    Raise Invalid if an expression does not end.
    """
    parts: list[tuple[str, bool]] = []
    literal, position = "", 0
    while (start := text.find("${", position)) >= 0:
        if start > position and text[start - 1] == "$":
            literal += text[position : start - 1] + "${"
            position = start + 2
            continue
        end = _end(text, start + 2)
        if end < 0:
            written = repr(text[start : start + 20])
            remedy = "close it with }, or quote a text with '#'"
            raise Invalid(f"{path}: the expression {written} does not end: {remedy}")
        parts += [(literal + text[position:start], False), (text[start + 2 : end], True)]
        literal, position = "", end + 1
    parts.append((literal + text[position:], False))
    return [(part, is_expression) for part, is_expression in parts if part or is_expression]


def _end(text: str, position: int) -> int:
    """Return the position of the brace that closes an expression; -1 if there is none."""
    depth, quote = 0, ""
    while position < len(text):
        character = text[position]
        if quote:
            position += character == "\\"
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "}" and depth == 0:
            return position
        else:
            depth += (character == "{") - (character == "}")
        position += 1
    return -1
