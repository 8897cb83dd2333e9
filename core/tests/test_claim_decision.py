"""The content of a claim that core creates, and what becomes of an existing claim."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_core.claim_decision import Claim, body, changes, claims_of, is_going, problem
from kubefoundry_sdk._api import names

OWNER = {"apiVersion": names.API_VERSION, "kind": "ModelDeployment", "name": "m", "uid": "u"}
OF_EARLIER = {names.CLAIM_OF_ANNOTATION: "m/weights", names.CLAIM_OF_UID_ANNOTATION: "earlier"}
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c"}
IMMUTABLE = (
    "rename the volume for a new claim, or delete the claim with its files, and set scaling.replicas to 0 until it "
    "is created again"
)


def claim(**template: Any) -> Claim:
    volume = {"name": "weights", "claimTemplate": {"size": "2Gi", **template}, "mountPath": "/w"}
    spec = {"model": {"id": "o/m", "storage": {"volumes": [volume]}}, "engine": {"type": "llamacpp"}}
    [only] = claims_of({"metadata": {"name": "m", "namespace": "n", "uid": "u"}, "spec": spec})
    return only


def live(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return the claim as the API server stores it, with changed metadata and spec."""
    stored = body(claim())
    stored["metadata"] |= metadata or {}
    stored["spec"] |= {"storageClassName": "fast", **spec}
    return stored


def test_claim_states_size_mode_class_and_owner() -> None:
    made = body(claim(storageClassName="fast", accessMode="ReadWriteMany", whenDeleted="Delete"))

    assert made["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "2Gi"}},
        "storageClassName": "fast",
    }
    assert made["metadata"]["ownerReferences"] == [OWNER]


def test_volume_with_a_claim_name_needs_no_claim() -> None:
    volume = {"name": "w", "claimName": "c", "mountPath": "/w"}
    spec = {"model": {"id": "o/m", "storage": {"volumes": [volume]}}, "engine": {"type": "llamacpp"}}

    assert claims_of({"metadata": {"name": "m"}, "spec": spec}) == []


@pytest.mark.parametrize(
    ("template", "existing", "expected"),
    [
        ({}, live(), ""),
        ({"storageClassName": "fast"}, live(), ""),
        (
            {},
            live({"annotations": {}}),
            "exists and was not created for this volume: set claimName instead of claimTemplate to use it, or rename "
            "the volume",
        ),
        (
            {},
            live({"annotations": {names.CLAIM_OF_ANNOTATION: "m-other/weights"}}),
            "exists and was not created for this volume: set claimName instead of claimTemplate to use it, or rename "
            "the volume",
        ),
        (
            {},
            live({"deletionTimestamp": "2026-03-01T00:00:00Z", "annotations": OF_EARLIER}),
            "is being deleted. It is created again as soon as no pod mounts it and it is gone",
        ),
        (
            {"whenDeleted": "Delete"},
            live({"ownerReferences": [{**OWNER, "uid": "earlier"}]}),
            "is deleted with an earlier ModelDeployment of this name. It is created again as soon as it is gone",
        ),
        (
            {},
            live({"ownerReferences": [OWNER, {**OWNER, "name": "other", "uid": "o"}]}),
            "is deleted with ModelDeployment other, which also owns it: remove that owner from its "
            "metadata.ownerReferences, or rename the volume for a new claim",
        ),
        (
            {"accessMode": "ReadWriteMany"},
            live(),
            f"has accessMode ReadWriteOnce, which cannot change: set accessMode to that, {IMMUTABLE}",
        ),
        (
            {"storageClassName": "slow"},
            live(),
            f"has storageClassName fast, which cannot change: set storageClassName to that, {IMMUTABLE}",
        ),
        (
            {"storageClassName": "slow"},
            live(storageClassName=None),
            f"has no storageClassName, which cannot change: remove storageClassName, {IMMUTABLE}",
        ),
    ],
)
def test_existing_claim_is_refused_with_a_remedy(
    template: dict[str, Any], existing: dict[str, Any], expected: str
) -> None:
    assert problem(claim(**template), existing) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, False),
        ({"deletionTimestamp": "2026-03-01T00:00:00Z"}, True),
        ({"deletionTimestamp": "2026-03-01T00:00:00Z", "annotations": OF_EARLIER}, False),
        ({"deletionTimestamp": "2026-03-01T00:00:00Z", "annotations": {}}, False),
    ],
)
def test_only_a_deleted_claim_of_this_model_is_going(metadata: dict[str, Any], expected: bool) -> None:
    assert is_going(claim(), live(metadata)) == expected


@pytest.mark.parametrize(
    ("template", "existing", "paths"),
    [
        ({}, live(), []),
        ({"size": "2048Mi"}, live(), []),
        ({"size": "1Gi"}, live(), []),
        ({}, live(resources={"requests": {"storage": "corrupt"}}), []),
        ({"size": "8Ei"}, live(resources={"requests": {"storage": "9223372036854775807"}}), []),
        ({"size": "99999999999Ei"}, live(resources={"requests": {"storage": "9223372036854775807"}}), []),
        ({"size": "3Gi"}, live(), ["/spec/resources/requests/storage"]),
        ({"whenDeleted": "Delete"}, live(), ["/metadata/ownerReferences"]),
        ({"whenDeleted": "Delete"}, live({"ownerReferences": [OTHER, OWNER]}), []),
        ({}, live({"ownerReferences": [OWNER]}), ["/metadata/ownerReferences"]),
        (
            {"size": "3Gi", "whenDeleted": "Delete"},
            live({"annotations": {names.CLAIM_OF_ANNOTATION: "m/weights"}}),
            [
                "/metadata/annotations/kubefoundry.ai~1claim-of-uid",
                "/metadata/ownerReferences",
                "/spec/resources/requests/storage",
            ],
        ),
    ],
)
def test_existing_claim_follows_the_template(
    template: dict[str, Any], existing: dict[str, Any], paths: list[str]
) -> None:
    found = changes(claim(**template), existing)

    assert [change.operations[0]["path"] for change in found] == paths


def test_other_owners_of_a_claim_stay() -> None:
    [added] = changes(claim(whenDeleted="Delete"), live({"ownerReferences": [OTHER]}))
    [removed] = changes(claim(), live({"ownerReferences": [OTHER, OWNER]}))

    assert added.operations[0]["value"] == [OTHER, OWNER]
    assert removed.operations[0]["value"] == [OTHER]
