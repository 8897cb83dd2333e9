"""The variables of a mapping's expressions: their types, their values, and the fields of the spec in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from kubefoundry_sdk._cel.evaluation import Budget
from kubefoundry_sdk._cel.lint import Scope
from kubefoundry_sdk._cel.rule import Values
from kubefoundry_sdk._cel.schema import DYN, INT, STRING, VARIABLES, ListOf, MapOf, Record, Type
from kubefoundry_sdk._functions.mapping.expression import MAX_STEPS, Invalid, Variables
from kubefoundry_sdk._provider.contract import Capabilities, Deployment
from kubefoundry_sdk._provider.results import Fault
from kubefoundry_sdk._provider.upstream_status import upstream_conditions
from kubefoundry_sdk.engine import parallel
from kubefoundry_sdk.pod import aggregated_resources

SELECTED: Final = {"engine.type": "engines", "serving.mode": "serving_modes"}
"""The fields that the runtime compares with capabilities, and which."""

MAX_PARTS: Final = 20_000
"""The most values in a status: a larger one would take longer than all expressions."""

MAX_LEVELS: Final = 100
"""Levels of nesting in a status; its conversion is recursive."""

_GPUS: Final = ("resources.gpu.count",)
_DERIVED: Final[Mapping[str, tuple[Type, tuple[str, ...]]]] = {
    "servedName": (STRING, ("model.id", "model.servedName")),
    "image": (STRING, ("image",)),
    "gpuCount": (INT, _GPUS),
    "tensorParallelSize": (INT, _GPUS),
    "resources": (
        DYN,
        (*_GPUS, *(f"resources.{name}" for name in ("gpu.type", "memory", "cpu", "cpuLimit"))),
    ),
}
"""Values that the SDK computes: their types, and the fields of the spec in them."""


def _with_whole_settings(spec: Record) -> Record:
    """Return the type of the spec without `provider`, and with each setting of pods as one value of any form.

    A mapping passes on or refuses a setting such as an affinity as a whole.
    """
    template = cast(Record, spec.fields["podTemplate"])
    settings = {
        part: Record(
            {
                name: MapOf(DYN) if isinstance(kind, Record) else kind
                for name, kind in cast(Record, template.fields[part]).fields.items()
            }
        )
        for part in ("spec", "container")
    }
    fields = {name: kind for name, kind in spec.fields.items() if name != "provider"}
    return Record({**fields, "podTemplate": Record({**template.fields, **settings})})


_SPEC: Final = _with_whole_settings(cast(Record, VARIABLES["spec"]))
_CONDITION: Final = Record(dict.fromkeys(("status", "reason", "message"), STRING))


def scope(overrides: Record) -> Scope:
    """Return the variables of templates and problems, with the type of `spec.provider.overrides`."""
    return {
        "spec": _SPEC,
        "metadata": VARIABLES["metadata"],
        "derived": Record({name: kind for name, (kind, _) in _DERIVED.items()}),
        "overrides": overrides,
        "features": ListOf(STRING),
        "omit": DYN,
    }


def status_scope(overrides: Record) -> Scope:
    """Return the variables of the section `status`."""
    always = {name: kind for name, kind in scope(overrides).items() if name != "features"}
    return {**always, "status": DYN, "conditions": MapOf(_CONDITION)}


def variables(
    deployment: Deployment, images: Mapping[str, str], features: Iterable[str], types: Scope
) -> Variables:
    """Return the values of the variables for a deployment."""
    spec = deployment.spec
    json: dict[str, Any] = {
        "spec": spec.model_dump(by_alias=True, exclude_none=True),
        "metadata": {
            "name": deployment.name,
            "namespace": deployment.namespace,
            "labels": dict(deployment.labels),
            "annotations": dict(deployment.annotations),
        },
        "overrides": (spec.provider and spec.provider.overrides) or {},
        "features": sorted(features),
        "omit": None,
    }
    tensor = parallel(spec.engine.type, spec.engine.args, spec.gpu_count).tensor
    derived = {
        "servedName": spec.served_name,
        "image": spec.image or images.get(spec.engine.type or ""),
        "gpuCount": spec.gpu_count,
        "tensorParallelSize": tensor if tensor > 1 else None,
        "resources": aggregated_resources(spec) or None,
    }
    json["derived"] = {name: value for name, value in derived.items() if value is not None}
    return Variables(json, Values(json, types), Budget(MAX_STEPS))


def with_status(variables: Variables, status: Mapping[str, Any], types: Scope) -> Variables:
    """Return the variables with those of the upstream object's status. Raise Fault if the status is too large."""
    _check_size(status)
    conditions = {
        name: {"status": condition.status, "reason": condition.reason, "message": condition.message}
        for name, condition in upstream_conditions(status).items()
    }
    every = {**variables.json, "status": dict(status), "conditions": conditions}
    json = {name: every[name] for name in types}
    return Variables(json, Values(json, types), variables.budget)


def _check_size(status: Mapping[str, Any]) -> None:
    parts, waiting = 0, [(1, status)]
    while waiting:
        level, part = waiting.pop()
        parts += 1
        inner: Any = part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ()
        waiting.extend((level + 1, item) for item in inner)
        if parts + len(waiting) > MAX_PARTS:
            raise Fault(f"status: has more than {MAX_PARTS} values")
        if level > MAX_LEVELS:
            raise Fault(f"status: is nested more than {MAX_LEVELS} levels deep")


def fields_in(path: tuple[str, ...], where: str) -> tuple[str, ...]:
    """Return the fields of the spec whose whole values a template reads with a path.

    Raise Invalid if the path is an object of the spec, of which no field would be left to refuse.
    """
    root, *rest = path
    if root == "derived":
        # Of `derived.resources.limits`, the rest would be lost.
        return _DERIVED[rest[0]][1] if len(rest) == 1 else ()
    if root != "spec":
        return ()
    known, field = set(_fields()), ".".join(rest)
    below = sorted(each for each in known if not field or each.startswith(f"{field}."))
    if below:
        raise Invalid(f"{where}: {'.'.join(path)} is an object: read its fields, such as spec.{below[0]}")
    return (field,) if field in known else ()


def fields_to_honour(capabilities: Capabilities) -> tuple[str, ...]:
    """Return the fields of the spec that the provider refuses unless a template reads them.

    The runtime compares engine and mode with the capabilities.
    """
    unused = [*SELECTED]
    if "disaggregated" not in capabilities.serving_modes:
        unused += ["scaling.prefill.", "scaling.decode."]
    return tuple(field for field in _fields() if not field.startswith(tuple(unused)))


def _fields() -> Iterator[str]:
    return map(".".join, leaves(_SPEC))


def leaves(record: Record) -> Iterator[tuple[str, ...]]:
    """Yield the steps to each value that is no object with fields."""
    for name, kind in record.fields.items():
        for below in leaves(kind) if isinstance(kind, Record) else [()]:
            yield (name, *below)
