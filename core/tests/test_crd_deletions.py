"""The deletion of our CRDs is refused while ModelDeployments exist."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kubefoundry_core.admission.crd_deletions import SHOWN, validate
from kubefoundry_core.admission.review import Malformed
from kubefoundry_core.certificates import renewed
from kubefoundry_core.crd_protection import PATH, configuration
from kubefoundry_sdk._api.crd import model_deployments, provider_configs

OURS = [model_deployments()["metadata"]["name"], provider_configs()["metadata"]["name"]]


def answer(name: str, *models: str) -> dict[str, Any]:
    response: dict[str, Any] = validate({"request": {"uid": "u", "name": name}}, models)["response"]
    return response


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("number", [1, SHOWN, SHOWN + 1, 1000])
def test_crd_deletion_is_refused_while_models_exist(name: str, number: int) -> None:
    models = [f"ns/m-{index}" for index in range(number)]

    response = answer(name, *models)

    assert response["allowed"] is False
    message = response["status"]["message"]
    assert name in message
    assert str(number) in message
    assert "ns/m-0" in message
    assert len(message) < 300


@pytest.mark.parametrize("name", OURS)
def test_crd_deletion_is_allowed_without_models(name: str) -> None:
    assert answer(name) == {"uid": "u", "allowed": True}


def test_deletion_of_another_crd_is_allowed() -> None:
    assert answer("widgets.example.com", "ns/m")["allowed"] is True


@pytest.mark.parametrize("review", [None, [], {}, {"request": None}, {"request": {"uid": "u"}}])
def test_malformed_crd_review_is_rejected(review: Any) -> None:
    with pytest.raises(Malformed):
        validate(review, [])


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (
            {"service": {"name": "kubefoundry-core", "namespace": "ml", "path": "/validate", "port": 443}},
            {"service": {"name": "kubefoundry-core", "namespace": "ml", "path": PATH, "port": 443}},
        ),
        ({"url": "https://127.0.0.1:9443/validate"}, {"url": f"https://127.0.0.1:9443{PATH}"}),
    ],
)
def test_protection_is_called_where_core_is(address: dict[str, Any], expected: dict[str, Any]) -> None:
    material = renewed(None, ("a",), datetime.now(UTC))
    assert material
    crd = {**model_deployments(), "metadata": {"name": OURS[0], "uid": "1"}}

    made = configuration({"webhooks": [{"clientConfig": address}]}, crd, material.bundle)

    assert made
    [webhook] = made["webhooks"]
    assert webhook["failurePolicy"] == "Fail"
    assert {key: value for key, value in webhook["clientConfig"].items() if key != "caBundle"} == expected
    selected = webhook["objectSelector"]["matchLabels"].items()
    assert all(
        selected <= each["metadata"]["labels"].items() for each in (model_deployments(), provider_configs())
    )


def test_crd_that_is_being_deleted_is_not_protected() -> None:
    crd = {"metadata": {"name": OURS[0], "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}

    assert configuration({"webhooks": [{"clientConfig": {"url": "https://a/"}}]}, crd, b"") is None
