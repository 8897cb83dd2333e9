"""cel-python's evaluator with a budget, a strict `has()`, and its own short-circuit logic and macros.

cel-python 0.5 cannot be interrupted, evaluates both sides of `||`, lets an error inside a macro escape from `||
true`, and its `has()` hides every failure (sources §6.1). These parts are replaced here.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from celpy.celtypes import BoolType, IntType, ListType, MapType, StringType, UintType
from celpy.evaluation import Activation, CELEvalError, Evaluator

from kubefoundry_sdk._cel import operators
from kubefoundry_sdk._cel.functions import IMPLEMENTATIONS, TYPE_NAMES
from kubefoundry_sdk._cel.source import MACROS, Node

MAX_STEPS: Final = 2000
"""The most steps of one evaluation (sources §6.1); shipped rules need at most 30."""
MAX_CELLS: Final = 4096
"""The largest value that a rule may build: its elements, and one more for each 64 characters of text."""
TEXT_PER_CELL: Final = 64
TEXT_PER_STEP: Final = 256
"""Characters that a function reads in one step."""

_ACTIVATION: Final = Activation(functions={**IMPLEMENTATIONS, **operators.ARITHMETIC})
_ORDERINGS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "relation_lt": operator.lt,
    "relation_le": operator.le,
    "relation_gt": operator.gt,
    "relation_ge": operator.ge,
}
_BUILDS: Final = frozenset({"addition", "member_dot_arg"})

# cel-python logs ordinary CEL errors at level ERROR, with the values.
logging.getLogger("celpy").setLevel(logging.CRITICAL + 1)


class BudgetSpent(BaseException):
    """The evaluation takes too long. Not an Exception, because `||` absorbs those."""


class Budget:
    """The steps left for one evaluation, shared with nested ones."""

    __slots__ = ("left", "steps")

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.left = self.steps = steps

    def spend(self, steps: int) -> None:
        """Charge steps. Raise BudgetSpent if no steps are left."""
        self.left -= steps
        if self.left < 0:
            raise BudgetSpent(f"it takes more than {self.steps} steps")

    def admit(self, value: Any) -> None:
        """Charge a value that the rule has built, and refuse one that is too large."""
        if isinstance(value, (StringType, ListType, MapType)):
            self.spend(_cells(value) // 16)


def _cells(value: Any) -> int:
    """Return the size of a value. Shared parts count each time, so that doubling structures are noticed."""
    total, waiting = 0, [value]
    while waiting:
        part = waiting.pop()
        total += 1
        if isinstance(part, StringType):
            total += len(part) // TEXT_PER_CELL
        elif isinstance(part, MapType):
            waiting.extend(part.values())
        elif isinstance(part, ListType):
            waiting.extend(part)
        if total + len(waiting) > MAX_CELLS:
            raise BudgetSpent(f"it builds a value of more than {MAX_CELLS} parts")
    return total


class Evaluation(Evaluator):
    """One run of a rule, or of a macro's body, with the variables in `scope`."""

    def __init__(self, tree: Node, scope: Mapping[str, Any], budget: Budget) -> None:
        super().__init__(tree, _ACTIVATION)
        self.scope = scope
        self.budget = budget

    def _visit_tree(self, tree: Any) -> Any:
        self.budget.spend(1)
        value = super()._visit_tree(tree)
        if tree.data in _BUILDS or (tree.data == "primary" and tree.children[0].data.endswith("_lit")):
            self.budget.admit(value)
        return value

    def ident_value(self, name: str, root_scope: bool = False) -> Any:
        """Return the value of a variable in scope, or the type of that name."""
        return self.scope[name] if name in self.scope else TYPE_NAMES[name]

    def function_eval(self, name_token: Any, exprlist: Any = None) -> Any:
        """Charge the length of text arguments, and call a function."""
        self._charge_text(exprlist)
        return super().function_eval(name_token, exprlist)

    def method_eval(self, object: Any, method_ident: Any, exprlist: Any = None) -> Any:
        """Charge the length of a text and of text arguments, and call a method."""
        self._charge_text([object, *(exprlist if isinstance(exprlist, list) else ())])
        return super().method_eval(object, method_ident, exprlist)

    def _charge_text(self, values: Any) -> None:
        if isinstance(values, list):
            self.budget.spend(sum(len(v) for v in values if isinstance(v, StringType)) // TEXT_PER_STEP)

    def macro_has_eval(self, exprlist: Any) -> Any:
        """Evaluate has(): only the last field may be absent (cel-spec langdef, "Field Selection")."""
        operand, field = exprlist.children[0].children
        value = self._visit_tree(operand)
        if isinstance(value, CELEvalError):
            return value
        if not isinstance(value, MapType):
            return _error("has() needs an object or a map")
        return BoolType(dict.__contains__(value, StringType(field)))

    def expr(self, tree: Any) -> Any:
        """Evaluate `condition ? a : b`: an error of the condition is the result."""
        condition, *choices = tree.children
        value = self._visit_tree(condition)
        if isinstance(value, CELEvalError):
            return value
        if not isinstance(value, BoolType):
            return _error("no matching overload: a bool is needed before '?'")
        return self._visit_tree(choices[0 if value else 1])

    def conditionalor(self, tree: Any) -> Any:
        """Evaluate `a || b`: true if either side is true, even if the other side is an error."""
        return self._logic(tree, BoolType(True))

    def conditionaland(self, tree: Any) -> Any:
        """Evaluate `a && b`: false if either side is false, even if the other side is an error."""
        return self._logic(tree, BoolType(False))

    def _logic(self, tree: Node, decisive: BoolType) -> Any:
        left, right = tree.children
        return _fold((self._visit_tree(side) for side in (left, right)), decisive)

    def relation(self, tree: Any) -> Any:
        """Evaluate `==`, `!=`, `in` and the orderings by the rules of `operators`, which differ from cel-python's."""
        side, right_tree = tree.children
        left, right = self._visit_tree(side.children[0]), self._visit_tree(right_tree)
        for operand in (left, right):
            if isinstance(operand, CELEvalError):
                return operand
        try:
            if side.data == "relation_in":
                return operators.member_of(left, right, self.budget.spend)
            if side.data in _ORDERINGS:
                return operators.compare(_ORDERINGS[side.data], left, right)
            same = operators.equal(left, right, self.budget.spend)
            return BoolType(same == (side.data == "relation_eq"))
        except TypeError as error:
            return _error(f"no matching overload: {error}")

    def mapinits(self, tree: Any) -> Any:
        """Build a map, or return an error for an invalid or duplicate key."""
        for value in (values := self.visit_children(tree)):
            if isinstance(value, CELEvalError):
                return value
        built = MapType()
        for key, value in zip(values[0::2], values[1::2], strict=True):
            if not isinstance(key, (StringType, IntType, UintType)):
                # JSON has only string keys; Python treats True and 1 as the same key
                return _error("a key of a map is a string or a whole number")
            if operators.entry(built, key) is not None:
                return _error("duplicate key in a map")
            built[key] = cast(Any, value)
        return built

    def member_dot_arg(self, tree: Any) -> Any:
        """Evaluate a macro such as `list.all(x, ...)`, or call a method."""
        name = tree.children[1].value
        return self._macro(name, tree) if name in MACROS else super().member_dot_arg(tree)

    def _macro(self, name: str, tree: Node) -> Any:
        source = self._visit_tree(tree.children[0])
        if isinstance(source, CELEvalError):
            return source
        if not isinstance(source, (ListType, MapType)):
            return _error(f"{name}() needs a list or a map")
        variable, *bodies = cast(Any, tree.children[2]).children
        ident = variable.children[0].children[0].value
        if name in ("all", "exists"):
            return _fold(self._each(source, ident, bodies[0]), BoolType(name == "exists"))
        if name == "exists_one":
            return _counted_one([*self._each(source, ident, bodies[0])])
        if name == "filter" or len(bodies) == 2:
            source = _filtered(source, self._each(source, ident, bodies[0]), name)
            if name == "filter" or isinstance(source, CELEvalError):
                return source
        return _listed([*self._each(source, ident, bodies[-1])])

    def _each(self, items: Any, ident: str, body: Any) -> Iterator[Any]:
        """Evaluate the body for each item."""
        for item in items:
            yield type(self)(body, {**self.scope, ident: item}, self.budget)._visit_tree(body)


def _error(text: str) -> CELEvalError:
    return CELEvalError(text)


def _fold(values: Iterator[Any], decisive: BoolType) -> Any:
    """Evaluate `||` with True, `&&` with False: the decisive value wins over errors, an error over anything else."""
    failure: CELEvalError | None = None
    for value in values:
        if isinstance(value, CELEvalError):
            failure = failure or value
        elif not isinstance(value, BoolType):
            failure = failure or _error("no matching overload: a bool is needed")
        elif bool(value) == bool(decisive):
            return decisive
    return failure if failure is not None else BoolType(not decisive)


def _filtered(items: Any, keeps: Iterator[Any], name: str) -> Any:
    kept = ListType()
    for item, keep in zip(items, keeps, strict=True):
        if not isinstance(keep, BoolType):
            return keep if isinstance(keep, CELEvalError) else _error(f"{name}() needs a bool")
        if keep:
            kept.append(item)
    return kept


def _listed(values: list[Any]) -> Any:
    return next((value for value in values if isinstance(value, CELEvalError)), ListType(values))


def _counted_one(values: list[Any]) -> Any:
    for value in values:
        if isinstance(value, CELEvalError):
            return value
        if not isinstance(value, BoolType):
            return _error("exists_one() needs a bool")
    return BoolType(sum(1 for value in values if value) == 1)
