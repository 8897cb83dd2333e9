"""Decodes what a request sends, into an object as the server would store it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing import structural
from kubefoundry_sdk.testing._server import errors, schemas
from kubefoundry_sdk.testing._server.resources import Resource

_KEPT_EMPTY: Final = frozenset(
    {"status", "strategy", "resources", "securityContext", "emptyDir", "labelSelector"}
)
"""Fields of built-in kinds that are pointers or no `omitempty`, so that an empty map stays."""

_NOT_ZERO: Final = frozenset(
    {
        *(
            "paused",
            "minReadySeconds",
            "publishNotReadyAddresses",
            "readOnly",
            "value",
            "workingDir",
            "subPath",
        ),
        *(
            "observedGeneration",
            "readyReplicas",
            "availableReplicas",
            "updatedReplicas",
            "unavailableReplicas",
        ),
    }
)
"""Fields of built-in kinds with `omitempty` that are no pointers, so that zero is the same as their absence."""

_ZERO_META: Final = frozenset({"deletionGracePeriodSeconds"})
"""Numbers of ObjectMeta that are pointers, so that zero stays."""


class Undecodable(errors.Refused):
    """The server cannot decode the object, or may not as `fieldValidation` is strict; `text` says why."""

    def __init__(self, resource: Resource, text: str, is_too_large: bool = False) -> None:
        self.text = text
        self.is_too_large = is_too_large
        handled = f"{resource.kind} in version {resource.version!r} cannot be handled as a {resource.kind}"
        super().__init__(400, "BadRequest", f"{handled}: {text}")


def decoded(raw: bytes | None) -> Any:
    """Return the document of a request. Raise Refused (400) if there is none: YAML is read only if it is JSON."""
    try:
        return json.loads(raw or b"")
    except ValueError as error:
        raise errors.bad_request(f"error decoding the request: {error}") from error


def checked(body: Any, resource: Resource) -> Object:
    """Return the body as an object of the kind. Raise Refused (400) if it is something else."""
    if not isinstance(body, dict):
        raise errors.bad_request("the object provided is unrecognized: it is not a map")
    version, kind = body.get("apiVersion"), body.get("kind")
    if not kind:
        raise errors.bad_request("Object 'Kind' is missing")
    if version != resource.api_version:
        raise errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if kind != resource.kind:
        raise errors.bad_request(
            f"{kind} in version {version} cannot be handled as a {resource.kind}: kind does not match"
        )
    meta = body.get("metadata")
    if not isinstance(meta, dict | None):
        raise errors.bad_request("metadata is not a map")
    return {**body, "metadata": dict(meta or {})}


def admitted(body: Object, resource: Resource, query: Mapping[str, str], warnings: list[str]) -> Object:
    """Return the object pruned and with defaults, as the server decodes it. Raise Refused for wrong fields."""
    if not resource.custom:
        _check_types(body, resource)
    dropped: list[str] = []
    pruned = structural.prune(body, resource.schema, "", dropped, resource=True)
    dropped += [f"metadata.{name}" for name in pruned["metadata"] if name not in structural.OBJECT_META]
    if dropped and not resource.is_complete:
        raise errors.unknown_feature(f"the field {dropped[0]} of the kind {resource.kind}")
    unknown = [f'unknown field "{path}"' for path in sorted(dropped)]
    validation = query.get("fieldValidation", "Warn")
    if unknown and validation == "Strict":
        raise Undecodable(resource, f"strict decoding error: {', '.join(unknown)}")
    if validation == "Warn":
        warnings += unknown
    if resource.custom:
        pruned = schemas.without_nulls(pruned, resource.schema)
    return completed(pruned, resource)


def completed(obj: Object, resource: Resource) -> Object:
    """Return an object with the defaults of its schema, and metadata as the server encodes it."""
    obj = {**obj, "metadata": _metadata(obj["metadata"])}
    if resource.custom:
        return dict(schemas.defaulted(obj, resource.defaults))
    _check_types(obj, resource)
    whole: Object = schemas.defaulted({**_without_empty(obj), "metadata": obj["metadata"]}, resource.defaults)
    if resource.plural in ("deployments", "pods"):
        _set_pull_policies(whole)
        _unset_rolling_update(whole, obj)
    return whole


def _metadata(meta: Object) -> Object:
    """Return the metadata as ObjectMeta is decoded and encoded: without unknown, null and empty fields."""
    kept = {}
    for name, value in meta.items():
        if name not in structural.OBJECT_META:
            continue
        if name in ("labels", "annotations"):
            _check_texts(name, value)
            value = {key: text or "" for key, text in (value or {}).items()}
        is_empty = value in (None, "", [], {}) or (value == 0 and name not in _ZERO_META)
        if name == "managedFields" or not is_empty:
            kept[name] = value
    return kept


def _check_texts(name: str, value: Any) -> None:
    if not isinstance(value, dict | None):
        raise errors.bad_request(f"metadata.{name} is not a map of strings")
    for key, text in (value or {}).items():
        if not isinstance(text, str | None):
            raise errors.bad_request(f"metadata.{name}[{key}] is not a string")


def _check_types(obj: Object, resource: Resource) -> None:
    """Raise Refused (400) for a value of a built-in kind that Go cannot decode."""
    for problem in schemas.problems({key: obj[key] for key in obj if key != "metadata"}, resource.schema):
        if "null" not in problem.text.split(":")[1]:
            is_too_large = problem.reason == "FieldValueInvalid"
            raise Undecodable(resource, f"json: cannot unmarshal into {problem.field}", is_too_large)


def _without_empty(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned = {name: _without_empty(child) for name, child in value.items()}
    return {name: child for name, child in cleaned.items() if child is not None and _is_kept(name, child)}


def _is_kept(name: str, child: Any) -> bool:
    return (child not in ({}, []) or name in _KEPT_EMPTY) and bool(child or name not in _NOT_ZERO)


def _set_pull_policies(obj: Object) -> None:
    spec = obj["spec"]["template"]["spec"] if "template" in obj.get("spec", {}) else obj.get("spec", {})
    for container in [*spec.get("containers", ()), *spec.get("initContainers", ())]:
        if "imagePullPolicy" not in container and "image" in container:
            tag = container["image"].rpartition("/")[2].partition(":")[2]
            container["imagePullPolicy"] = "Always" if tag in ("", "latest") else "IfNotPresent"


def _unset_rolling_update(whole: Object, stated: Object) -> None:
    """Remove the default that only one strategy has."""
    strategy = (whole.get("spec") or {}).get("strategy") or {}
    given = (stated.get("spec") or {}).get("strategy") or {}
    if strategy.get("type") != "RollingUpdate" and "rollingUpdate" not in given:
        strategy.pop("rollingUpdate", None)
