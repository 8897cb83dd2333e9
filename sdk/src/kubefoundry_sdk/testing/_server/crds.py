"""What the API server adds to a CustomResourceDefinition, and the resources that it then serves."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing._server import errors

_SERVED: dict[tuple[str, str], list[Any]] = {}
"""The resources of a CRD, by its uid and the resource version: they are costly to make."""


def completed(crd: Object, now: str) -> Object:
    """Return the CRD with defaults and as accepted and established."""
    spec = {"conversion": {"strategy": "None"}, **crd["spec"]}
    if spec["conversion"].get("strategy") != "None":
        raise errors.unknown_feature(
            "conversion by a webhook: name one version in the CRD, or set strategy None"
        )
    names = {
        "listKind": f"{spec['names']['kind']}List",
        "singular": spec["names"]["kind"].lower(),
        **spec["names"],
    }
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    accepted = [
        {"type": type_, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
        for type_, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    meta = {"uid": str(uuid.uuid4()), "creationTimestamp": now, "generation": 1, **crd["metadata"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": meta,
        "spec": {**spec, "names": names},
        "status": {"conditions": accepted, "acceptedNames": names, "storedVersions": stored},
    }


def served(crd: Object, made: Callable[[Object], list[Any]]) -> list[Any]:
    """Return the resources of a stored CRD."""
    key = (crd["metadata"]["uid"], crd["metadata"]["resourceVersion"])
    if key not in _SERVED:
        _SERVED[key] = made(crd)
    return _SERVED[key]
