"""The rules of metadata: names, labels, finalizers, and what an update may change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing._server.errors import Problem
from kubefoundry_sdk.testing._server.resources import Resource

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KEY: Final = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


def problems(obj: Object, resource: Resource) -> Iterator[Problem]:
    """Yield the problems of an object's metadata."""
    meta = obj["metadata"]
    name = meta.get("name", "")
    if not _NAME.fullmatch(name) or len(name) > 253:
        yield _invalid(
            "metadata.name",
            name,
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
            "characters, '-' or '.', and must start and end with an alphanumeric character",
        )
    yield from _label_problems(meta.get("labels") or {})
    for key in meta.get("annotations") or {}:
        if not _KEY.fullmatch(key.lower()):
            yield _invalid("metadata.annotations", key, "name part must consist of alphanumeric characters")
    yield from _finalizer_problems(meta.get("finalizers") or (), resource)
    yield from _owner_problems(meta.get("ownerReferences") or ())


def _label_problems(labels: Mapping[str, str]) -> Iterator[Problem]:
    for key, value in labels.items():
        if not _KEY.fullmatch(key) or len(key.rpartition("/")[2]) > 63:
            yield _invalid(
                "metadata.labels", key, "name part must consist of alphanumeric characters, '-', '_' or '.'"
            )
        if not _VALUE.fullmatch(value) or len(value) > 63:
            yield _invalid(
                "metadata.labels",
                value,
                "a valid label must be an empty string or consist of alphanumeric "
                "characters, '-', '_' or '.'",
            )


def _finalizer_problems(finalizers: Any, resource: Resource) -> Iterator[Problem]:
    for index, name in enumerate(finalizers):
        if not isinstance(name, str) or not _KEY.fullmatch(name):
            yield _invalid("metadata.finalizers", name, "name part must consist of alphanumeric characters")
        elif not resource.custom and "/" not in name and name not in ("orphan", "foregroundDeletion"):
            yield _invalid(
                f"metadata.finalizers[{index}]",
                name,
                "name is neither a standard finalizer name nor is it fully qualified",
            )


def _owner_problems(owners: Any) -> Iterator[Problem]:
    controllers = [owner for owner in owners if owner.get("controller")]
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield _invalid(f"metadata.ownerReferences.{field}", "", "must not be empty")
    if len(controllers) > 1:
        yield _invalid(
            "metadata.ownerReferences", controllers, "Only one reference can have Controller set to true"
        )


def update_problems(old: Object, new: Object, resource: Resource) -> Iterator[Problem]:
    """Yield the forbidden changes of metadata."""
    before, after = old["metadata"], new["metadata"]
    fields = (
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    )
    for field in fields:
        if not same(before.get(field), after.get(field)):
            yield _invalid(f"metadata.{field}", after.get(field), "field is immutable")
    added = [name for name in after.get("finalizers") or () if name not in (before.get("finalizers") or ())]
    if before.get("deletionTimestamp") and added:
        text = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{', '.join(map(repr, added))}}}"
        )
        yield Problem("FieldValueForbidden", "metadata.finalizers", text)


def _invalid(field: str, value: Any, text: str) -> Problem:
    return Problem("FieldValueInvalid", field, f'Invalid value: "{value}": {text}')
