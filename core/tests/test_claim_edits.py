"""Edits of `claimTemplate` at admission."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_core.admission import modeldeployments

VALIDATED = {"conditions": [{"type": "Validated", "status": "True", "reason": "ValidationPassed"}]}
NOT_READY = {"conditions": [{"type": "Validated", "status": "False", "reason": "ClaimNotReady"}]}
CLAIM = "PersistentVolumeClaim m-weights: rename the volume for a new claim"
FIELD = "spec.model.storage.volumes[weights].claimTemplate"


def spec(template: dict[str, Any] | None, name: str = "weights") -> dict[str, Any]:
    source = {"claimTemplate": {"size": "2Gi", **template}} if template is not None else {"claimName": "c"}
    volume = {"name": name, "purpose": "modelCache", **source}
    return {"model": {"id": "o/m", "storage": {"volumes": [volume]}}, "engine": {"type": "llamacpp"}}


def response(new: Any, old: Any, status: dict[str, Any] | None = None) -> dict[str, Any]:
    meta = {"name": "m", "namespace": "n"}
    request = {
        "uid": "u",
        "kind": {"group": "kubefoundry.ai", "version": "v1alpha1", "kind": "ModelDeployment"},
        "operation": "UPDATE",
        "name": "m",
        "object": {"metadata": meta, "spec": new},
        "oldObject": {"metadata": meta, "spec": old, "status": VALIDATED if status is None else status},
    }
    return dict(modeldeployments.validate({"request": request}, {})["response"])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            {},
            {"accessMode": "ReadWriteMany"},
            f"{FIELD}.accessMode: cannot change from ReadWriteOnce to ReadWriteMany for an existing {CLAIM}",
        ),
        (
            {"storageClassName": "a"},
            {"storageClassName": "b"},
            f"{FIELD}.storageClassName: cannot change from a to b for an existing {CLAIM}",
        ),
        ({}, {"size": "1Gi"}, f"{FIELD}.size: 1Gi is less than 2Gi, and nothing shrinks an existing {CLAIM}"),
    ],
)
def test_edit_that_no_claim_can_follow_is_refused(
    old: dict[str, Any], new: dict[str, Any], problem: str
) -> None:
    answer = response(spec(new), spec(old))

    assert answer["status"]["message"] == f'ModelDeployment "m" is invalid: {problem}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (spec({}), spec({"size": "3Gi"})),
        (spec({}), spec({"size": "2048Mi"})),
        (spec({"size": "99999999999Ei"}), spec({"size": "8Ei"})),
        (spec({}), spec({"storageClassName": "fast"})),
        (spec({}), spec({"whenDeleted": "Delete"})),
        (spec({}), spec({"accessMode": "ReadWriteMany"}, "other")),
        (spec({}), spec(None)),
        (spec(None), spec({})),
    ],
)
def test_edit_that_a_claim_can_follow_is_allowed(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert response(new, old) == {"uid": "u", "allowed": True}


@pytest.mark.parametrize("status", [{}, NOT_READY])
def test_template_may_change_before_its_claim_exists(status: dict[str, Any]) -> None:
    new = spec({"size": "1Gi", "accessMode": "ReadWriteMany"})

    assert response(new, spec({}), status) == {"uid": "u", "allowed": True}


@pytest.mark.parametrize(
    "status", [{"conditions": [None, VALIDATED["conditions"][0]]}, {"conditions": 1}, {"conditions": [{}]}]
)
@pytest.mark.parametrize("template", [{"size": None}, {"size": {}, "accessMode": 1, "whenDeleted": []}])
def test_corrupt_stored_template_refuses_no_edit(status: dict[str, Any], template: dict[str, Any]) -> None:
    new = spec({"accessMode": "ReadWriteOnce"})
    old = spec({**template, "accessMode": "ReadWriteOnce"})

    assert response(new, old, status)["allowed"] is True


def test_removed_template_warns_if_its_claim_is_deleted() -> None:
    assert response(spec(None), spec({"whenDeleted": "Delete"}))["warnings"] == [
        "PersistentVolumeClaim m-weights stays, and is still deleted with the model: to keep it, set whenDeleted to "
        "Retain before you remove claimTemplate"
    ]
