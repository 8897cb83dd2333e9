"""Admission of ModelDeployments: defaults, rules and warnings (contract §2)."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubefoundry_core.admission import annotation_warnings, claim_edits, creator
from kubefoundry_core.admission.defaulting import patch, remove_nulls
from kubefoundry_core.admission.review import Request, Review, allowed, patched, refused, request_of
from kubefoundry_core.decision import not_registered
from kubefoundry_sdk._api import (
    conditions,
    engine_choice,
    handover,
    names,
    reasons,
    spec_limits,
    validation,
)
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.validation import Problem
from kubefoundry_sdk._runtime.store import size_of

LARGEST: Final = 2 * 2**20
"""Bytes. No object is larger, because etcd stores at most 1.5 MiB. With this much room left, no object is
measured."""

LABELS: Final = 64
"""Labels under our prefix that a ModelDeployment may have."""

IDENTITY: Final = ("model.id", "model.source", "engine.type", "serving.mode")
"""Fields whose change makes every provider recreate its upstream object (contract §4)."""

SMALL: Final = 4096
"""Bytes by which an object may grow in a full namespace."""


def _unlimited(namespace: str) -> int:
    return LARGEST


def mutate(review: Any, *, record_creator: bool = False) -> Review:
    """Remove nulls, add the CRD's defaults for clusters with an older CRD, and record the creator.

    Args:
        review: The decoded AdmissionReview.
        record_creator: Whether to record who creates the object.

    Raises:
        Malformed: `review` is not an AdmissionReview request with an object.
    """
    request = request_of(review)
    operations = [*(creator.record(request) if record_creator else ()), *_defaults(request)]
    if not operations:
        return allowed(request)
    return patched(request, base64.b64encode(json.dumps(operations).encode()))


def _defaults(request: Request) -> Iterator[dict[str, Any]]:
    if not request.decides_spec:
        return
    spec = request.object.get("spec")
    if not isinstance(spec, dict) or spec_limits.too_deep(spec):
        # The API server calls the validating webhook next, which reports the problem.
        return
    spec = copy.deepcopy(spec)
    yield from remove_nulls(spec, "/spec")
    yield from patch(spec, validation.default(spec), "/spec")


def validate(
    review: Any, registered: Mapping[str, Object], left: Callable[[str], int] = _unlimited
) -> Review:
    """Refuse a spec that breaks rules, and name every broken rule.

    Args:
        review: The decoded AdmissionReview.
        registered: The InferenceProviderConfigs by name. A problem with the provider only causes a warning, because
            KubeFoundry's parts may be installed in any order.
        left: Returns the bytes by which the ModelDeployments of a namespace may grow (`MemoryQuota`).

    Raises:
        Malformed: `review` is not an AdmissionReview request with an object.
    """
    request = request_of(review)
    if problem := _memory_problem(request, left) or _label_problem(request) or _name_problem(request):
        return refused(request, [problem])
    without_effect = annotation_warnings.warnings(request)
    if not request.decides_spec:
        return allowed(request, without_effect)
    spec = request.object.get("spec", {})
    problems = (
        validation.validate(spec) or _selected_engine_problems(request) or claim_edits.problems(request)
    )
    if problems:
        return refused(request, problems)
    warnings = [
        *validation.warnings(spec),
        *provider_warnings(spec, registered),
        *edit_warnings(request, registered),
        *claim_edits.warnings(request),
        *without_effect,
    ]
    return allowed(request, warnings)


def _selected_engine_problems(request: Request) -> list[Problem]:
    """Return why the engine that was selected for a model cannot run the new spec, which names none.

    The engine stays while a provider holds the model, so the edit could not be applied. A new value of `reselect`
    requests another choice, unless the spec names the provider: then nobody chooses again.
    """
    is_chosen_again = _reselects(request) and not LiveModelDeployment(request.object).requested_provider
    if request.old is None or not handover.holders(request.old) or is_chosen_again:
        return []
    spec, engine = _effective(request), engine_choice.effective_engine(request.old)
    if LiveModelDeployment(request.object).requested_engine or not engine:
        return []
    return [
        Problem(problem.path, f"{problem.message}; engine {engine} was selected: set engine.type for another")
        for problem in validation.validate(spec)
    ]


def _reselects(request: Request) -> bool:
    values = [
        (obj["metadata"].get("annotations") or {}).get(names.RESELECT_ANNOTATION)
        for obj in (request.object, request.old or request.object)
    ]
    return values[0] != values[1]


def _effective(request: Request) -> Object:
    """Return the new spec of an edit, with the engine that stays if it names none."""
    spec: Object = request.object.get("spec") or {}
    if LiveModelDeployment(request.object).requested_engine or request.old is None:
        return spec
    engine = engine_choice.effective_engine(request.old)
    return engine_choice.with_engine(spec, engine) if engine else spec


def _memory_problem(request: Request, left: Callable[[str], int]) -> Problem | None:
    """Return a problem if the object does not fit into the memory that its namespace may take.

    Every process keeps all ModelDeployments in memory, so one namespace must not take all of it. Small changes of an
    existing object are admitted, because providers add finalizers, and a deletion has to remove them.
    """
    namespace = str(request.object["metadata"].get("namespace") or "")
    free = left(namespace)
    if free >= LARGEST:
        return None
    growth = size_of(request.object) - (size_of(request.old) if request.old else 0)
    if growth <= free or (request.old and growth <= SMALL):
        return None
    return Problem(
        "metadata.namespace",
        f"the ModelDeployments of {namespace} take too much memory together, and this one takes {growth} bytes "
        f"more: delete some, or make labels, annotations and specs smaller",
    )


def _label_problem(request: Request) -> Problem | None:
    """Return a problem if too many labels have our prefix.

    Such labels are copied to every upstream object, and into the record of the applied object.
    """

    def own_labels(obj: Object) -> dict[str, Any]:
        labels = obj["metadata"].get("labels")
        pairs = labels.items() if isinstance(labels, dict) else ()
        return {key: value for key, value in pairs if key.startswith(names.PREFIX)}

    labels, before = own_labels(request.object), own_labels(request.old) if request.old else {}
    if len(labels) <= LABELS or all(key in before and before[key] == labels[key] for key in labels):
        return None
    return Problem(
        "metadata.labels",
        f"{len(labels)} labels begin with {names.PREFIX}; at most {LABELS} are copied to upstream objects: "
        "remove some",
    )


def _name_problem(request: Request) -> Problem | None:
    """Return a problem if the name has a dot, which the name of a Service cannot have.

    Existing objects are not checked, because they may be older than this rule.
    """
    if request.old is not None:
        return None
    return validation.name_problem(str(request.object["metadata"].get("name") or ""))


def provider_warnings(spec: Mapping[str, Any], registered: Mapping[str, Object]) -> list[str]:
    """Return a line for each problem that the registrations show for `spec.provider.name`."""
    name = (spec.get("provider") or {}).get("name")
    if not name:
        return []
    config = registered.get(name)
    if config is None:
        return [not_registered(name, registered.keys())]
    upstream = conditions.find((config.get("status") or {}).get("conditions"), reasons.UPSTREAM_READY)
    if upstream is None or upstream.get("status") != "False":
        return []
    if upstream.get("reason") == "CRDNotInstalled":
        return [f"Provider '{name}' CRD not installed in cluster"]
    return [f"Provider '{name}' is not ready: {upstream.get('message', '')}"]


def edit_warnings(request: Request, registered: Mapping[str, Object]) -> list[str]:
    """Return one line if the edit deletes and recreates a serving object.

    A hand-over has its own rules (contract §8).
    """
    if request.old is None or (serving := next(iter(handover.holders(request.old)), None)) is None:
        return []
    specs = (_effective(request), engine_choice.effective_spec(request.old))
    spec, before = map(validation.default, specs)
    if _value_at(spec, "provider.name") not in (None, serving):
        return []
    if changed := [path for path in IDENTITY if _value_at(spec, path) != _value_at(before, path)]:
        why = f"a change of {', '.join(changed)}"
    elif _rendered(spec) != _rendered(before) and _recreates(registered.get(serving)):
        why = f"almost every change with provider {serving}"
    else:
        return []
    namespace = request.object["metadata"].get("namespace")
    return [
        f"{why} deletes and recreates the upstream object, so the model does not serve in between, unless the change "
        f"is refused; kubefoundry plan {request.name} --set PATH=VALUE -n {namespace} shows what an edit does"
    ]


def _recreates(config: Object | None) -> bool:
    annotations = ((config or {}).get("metadata") or {}).get("annotations") or {}
    return annotations.get(names.EDITS_RECREATE_ANNOTATION) == "true"


def _rendered(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec without the provider's name, which is not rendered."""
    provider = {key: value for key, value in (spec.get("provider") or {}).items() if key != "name"}
    return {**spec, "provider": provider}


def _value_at(spec: Mapping[str, Any], path: str) -> Any:
    part, field = path.split(".")
    return (spec.get(part) or {}).get(field)
