"""Admission of InferenceProviderConfigs: warnings only (contract §2).

Core never refuses a registration, because a provider that cannot register is worse than a skipped rule. Core compiles
new selection rules as the selector does. It passes on the selector's verdict about the stored rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubefoundry_core.admission.review import Malformed, Request, Review, allowed, request_of
from kubefoundry_sdk._api import reasons, structure, validation
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.foreign_text import shown
from kubefoundry_sdk._api.kinds import Object

MOST_SECONDS: Final = 0.25
"""CPU seconds after which no further rule of a review is compiled. A shipped rule takes about 2 ms. The slowest text
of 1,024 characters takes almost 0.2 s, so 64 such rules would take 11 s."""


def validate(review: Any) -> Review:
    """Allow the registration, and warn about problems that keep the provider from being used.

    Raises:
        Malformed: `review` is not an AdmissionReview request with an object.
    """
    request = request_of(review)
    if not request.decides_spec:
        return allowed(request)
    return allowed(request, _warnings(request))


def _warnings(request: Request) -> list[str]:
    raw = request.object.get("spec") or {}
    schema = structure.of_spec("inferenceproviderconfig")
    spec = structure.defaulted(raw, schema)
    if problems := [*structure.problems(spec, schema, "spec")]:
        return [f"{problem.path}: {problem.message}" for problem in problems]
    warnings = [*_capability_warnings(spec["capabilities"])]
    stored_rules, verdict = _stored(request.old or {})
    if raw.get("selectionRules") != stored_rules:
        warnings += _rule_warnings([rule["condition"] for rule in spec.get("selectionRules", [])])
    elif verdict.get("status") == "False":
        warnings.append(f"spec.selectionRules: {verdict.get('message', '')}")
    return warnings


def _stored(config: Object) -> tuple[Any, Mapping[str, Any]]:
    """Return the stored selection rules, and the selector's condition about them."""
    try:
        verdict = find((config.get("status") or {}).get("conditions"), reasons.RULES_VALID) or {}
        return (config.get("spec") or {}).get("selectionRules"), verdict
    except (AttributeError, TypeError) as error:
        raise Malformed(f"not an InferenceProviderConfig as it is stored: {error!r}") from error


def _capability_warnings(capabilities: Mapping[str, Any]) -> Iterator[str]:
    for field, supported, lack in (
        ("engines", capabilities.get("engines", []), "no engine"),
        ("servingModes", capabilities.get("servingModes", []), "no serving mode"),
        ("cpuSupport", capabilities["cpuSupport"] or capabilities["gpuSupport"], "neither CPU nor GPU"),
    ):
        if not supported:
            yield f"spec.capabilities.{field}: with {lack} this provider is never selected automatically"
    engines = validation.schema()["properties"]["engine"]["properties"]["type"]["enum"]
    if unknown := sorted(set(capabilities.get("engines", [])) - set(engines)):
        yield (
            f"spec.capabilities.engines: no ModelDeployment can request {', '.join(unknown)}; its engines are "
            f"{', '.join(engines)}"
        )


def _rule_warnings(rules: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each rule that does not compile. Nothing of a rule is kept: each would take 25 KB."""
    if not rules:
        return
    # CEL takes 10 MiB. Rules rarely change, so most processes of core never import it.
    from kubefoundry_sdk._cel.rule import check

    began = time.thread_time()
    for index, rule in enumerate(rules):
        if time.thread_time() - began > MOST_SECONDS:
            yield (
                f"spec.selectionRules: the rules from index {index} on were not checked, because the rules before "
                "them take too long. Once stored, the condition RulesValid shows whether the selector can use them"
            )
            return
        if problem := check(rule):
            yield (
                f"spec.selectionRules[{index}].condition, {shown(str(problem))}. The selector skips a rule that it "
                "cannot compile: correct it"
            )
