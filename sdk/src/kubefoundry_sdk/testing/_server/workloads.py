"""The checks of a Deployment beyond the types of its fields; other built-in kinds are stored unchecked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import part
from kubefoundry_sdk.testing._server import errors
from kubefoundry_sdk.testing._server.errors import Problem


def deployment_problems(old: Object | None, new: Object) -> Iterator[Problem]:
    """Yield the problems of a Deployment that is created (`old` is None) or updated."""
    spec, selector = part(new, "spec"), part(new, "spec", "selector")
    if "matchExpressions" in selector:
        raise errors.unknown_feature("matchExpressions of a Deployment's selector")
    if not selector:
        yield _required("spec.selector")
    labels, wanted = part(spec, "template", "metadata", "labels"), part(selector, "matchLabels")
    if not wanted or not wanted.items() <= labels.items():
        yield _invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from _container_problems(part(spec, "template", "spec").get("containers") or [])
    yield from _number_problems(spec)
    if old is not None and not same(selector, part(old, "spec", "selector")):
        yield _invalid("spec.selector", selector, "field is immutable")


def _number_problems(spec: Mapping[str, Any]) -> Iterator[Problem]:
    for name in ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        if (spec.get(name) or 0) < 0:
            yield _invalid(f"spec.{name}", spec[name], "must be greater than or equal to 0")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield _invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _container_problems(containers: list[Mapping[str, Any]]) -> Iterator[Problem]:
    if not containers:
        yield _required("spec.template.spec.containers")
    for index, container in enumerate(containers):
        for name in ("name", "image"):
            if not container.get(name):
                yield _required(f"spec.template.spec.containers[{index}].{name}")


def deployment_status_problems(new: Object) -> Iterator[Problem]:
    """Yield the problems of a Deployment's status."""
    status = new.get("status") or {}
    total = status.get("replicas", 0)
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    for name in ("observedGeneration", *counts):
        if status.get(name, 0) < 0:
            yield _invalid(f"status.{name}", status[name], "must be greater than or equal to 0")
    for name in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        if status.get(name, 0) > total:
            yield _invalid(f"status.{name}", status.get(name, 0), "cannot be greater than status.replicas")
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        yield _invalid(
            "status.availableReplicas",
            status.get("availableReplicas", 0),
            "cannot be greater than readyReplicas",
        )


def _required(field: str) -> Problem:
    return Problem("FieldValueRequired", field, "Required value")


def _invalid(field: str, value: Any, text: str) -> Problem:
    return Problem("FieldValueInvalid", field, f"Invalid value: {value}: {text}")
