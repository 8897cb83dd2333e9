"""A selection rule: compiled once from its text, matched against a ModelDeployment.

The selector uses only `kubefoundry_sdk.cel`. Only this package and mappings depend on cel-python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from celpy.celtypes import BoolType
from celpy.evaluation import CELEvalError

from kubefoundry_sdk._cel.evaluation import Budget, BudgetSpent, Evaluation
from kubefoundry_sdk._cel.lint import lint
from kubefoundry_sdk._cel.paths import paths_in, value_at
from kubefoundry_sdk._cel.schema import VARIABLES, Type, to_cel
from kubefoundry_sdk._cel.source import BadSource, Node, Problem, parse

MAX_CACHED: Final = 1024
"""Compiled rules to keep: far more than the InferenceProviderConfigs of a cluster hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A compiled rule.

    Attributes:
        paths: The paths that it reads, such as `spec.engine.type`.
    """

    text: str
    tree: Node
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InvalidRule:
    """A rule that is skipped, with its first problem."""

    text: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule that could not be evaluated on this ModelDeployment. It counts as not matched."""

    text: str


class Values(Mapping[str, Any]):
    """CEL values of variables, converted when a rule first reads them: a ModelDeployment may have 40,000 labels."""

    def __init__(self, json: Mapping[str, Any], types: Mapping[str, Type] = VARIABLES) -> None:
        self._json = json
        self._types = types
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = to_cel(self._json[name], self._types[name])
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._json

    def __iter__(self) -> Iterator[str]:
        return iter(self._json)

    def __len__(self) -> int:
        return len(self._json)


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """The variables of rules for one ModelDeployment, as JSON and as CEL values."""

    json: Mapping[str, Any]
    values: Mapping[str, Any]


def environment(spec: Mapping[str, Any], metadata: Mapping[str, Any]) -> Environment:
    """Return the variables `spec` (already defaulted) and `metadata.{name,namespace,labels,annotations}`."""
    json = {
        "spec": dict(spec),
        "metadata": {
            "name": metadata.get("name") or "",
            "namespace": metadata.get("namespace") or "",
            "labels": dict(metadata.get("labels") or {}),
            "annotations": dict(metadata.get("annotations") or {}),
        },
    }
    return Environment(json, Values(json))


@lru_cache(maxsize=MAX_CACHED)
def compile(text: str) -> Rule | InvalidRule:
    """Parse a rule, check its size and lint it."""
    try:
        tree = _checked(text)
    except BadSource as error:
        return InvalidRule(text, error.problem)
    return Rule(text, tree, paths_in(tree, frozenset(VARIABLES)))


def check(text: str) -> Problem | None:
    """Return the first problem of a rule, as `compile` finds it, and keep nothing."""
    try:
        _checked(text)
    except BadSource as error:
        return error.problem
    return None


def _checked(text: str) -> Node:
    tree = parse(text)
    if problem := lint(tree):
        raise BadSource(problem)
    return tree


def match(rule: Rule, variables: Environment) -> bool | Failure:
    """Check whether the rule is true for the ModelDeployment. Never raises; bounded by `evaluation.MAX_STEPS`."""
    try:
        value = Evaluation(rule.tree, variables.values, Budget()).evaluate()
    except BudgetSpent as spent:
        return Failure(str(spent))
    except CELEvalError as error:
        return Failure(str(error.args[0]))
    except RecursionError:
        return Failure("it is nested too deeply")
    except Exception as error:  # cel-python raises ValueError, MemoryError and others (sources §6.1)
        return Failure(f"{type(error).__name__}: {error}")
    if not isinstance(value, BoolType):
        return Failure("it does not return a bool")
    return bool(value)


def values_read(rule: Rule, variables: Environment) -> dict[str, Any]:
    """Return the JSON values at the paths that the rule reads; None for an absent value."""
    return {path: value_at(path, variables.json) for path in rule.paths}
