"""Is a ModelDeployment spec valid, what should its author know, and what are its defaults.

One source for the validating webhook, the mutating webhook and the reconcile-time check (contract §2). The same
schema and rules are the CRD's; `extent`, `engine_args` and the keys of labels are checked here only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, islice
from typing import Any, Final

from kubefoundry_sdk.api import engine_args, extent, structure
from kubefoundry_sdk.api.formats import MEANINGS, QUALIFIED_NAME
from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk.api.rules import RULES, Rule
from kubefoundry_sdk.api.schema import Schema, structural
from kubefoundry_sdk.api.structure import Problem as Problem

Spec = dict[str, Any]

NAMED: Final = 20
"""Problems that are named: a spec of a megabyte may have a million."""

_KEY: Final = re.compile(QUALIFIED_NAME)


@cache
def schema() -> Schema:
    """The structural schema of a ModelDeployment's spec, without its rules."""
    return structural(ModelDeploymentSpec)


def default(spec: Spec) -> Spec:
    """A copy with the CRD's defaults, and without nulls, as the API server would store it."""
    completed: Spec = structure.defaulted(spec, schema())
    return completed


def validate(spec: Spec) -> list[Problem]:
    """What is wrong with a spec, with or without its defaults, up to NAMED of it; empty when it is valid.

    Where it is too deep or too large, only that is reported. Where types, enums or ranges are wrong, only that: the
    rules would speak about values that are none."""
    if beyond := extent.too_deep(spec) or extent.too_large(spec):
        return [Problem(*beyond)]
    if not isinstance(spec, dict):
        return list(structure.problems(spec, schema(), "spec"))
    complete = default(spec)
    found = _first(structure.problems(complete, schema(), "spec"))
    if found:
        return found
    broken = (problem for rule in RULES for problem in _broken(rule, complete))
    return _first(chain(broken, _keys(complete))) or _first(engine_args.problems(complete))


def _first(problems: Iterable[Problem]) -> list[Problem]:
    found = list(islice(problems, NAMED + 1))
    if len(found) > NAMED:
        found[NAMED] = Problem("spec", f"more is wrong, too: only the first {NAMED} are named")
    return found


def warnings(spec: Spec) -> list[str]:
    """What a valid spec says in vain (contract §2)."""
    complete = default(spec)
    told = []
    if complete["model"]["source"] == "custom" and complete["model"].get("servedName"):
        told.append("servedName is ignored for custom source")
    if complete["serving"]["mode"] == "aggregated" and {"prefill", "decode"} & complete["scaling"].keys():
        told.append("scaling.prefill and scaling.decode are ignored in aggregated mode")
    return told


def _broken(rule: Rule, spec: Spec) -> Iterator[Problem]:
    for path, value in _places(rule.at.split(".")[1:], spec, "spec"):
        if not rule.holds(value):
            yield Problem(f"{path}.{rule.field}" if rule.field else path, rule.message)


def _places(steps: list[str], value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every value at a path such as `env[].valueFrom`, with where it is."""
    if not steps:
        yield path, value
        return
    field, rest = steps[0].removesuffix("[]"), steps[1:]
    if field not in value:
        return
    if steps[0] == field:
        yield from _places(rest, value[field], f"{path}.{field}")
        return
    for index, item in enumerate(value[field]):
        yield from _places(rest, item, f"{path}.{field}[{index}]")


def _keys(spec: Spec) -> Iterator[Problem]:
    """Keys of labels have a form too, but a structural schema describes only values."""
    metadata = spec.get("podTemplate", {}).get("metadata", {})
    for path, keys in (
        ("spec.podTemplate.metadata.labels", metadata.get("labels", {})),
        ("spec.podTemplate.metadata.annotations", metadata.get("annotations", {})),
        ("spec.nodeSelector", spec.get("nodeSelector", {})),
    ):
        for key in keys:
            if not _KEY.fullmatch(key):
                yield Problem(f"{path}[{key}]", f"the key must be {MEANINGS[QUALIFIED_NAME]}")
