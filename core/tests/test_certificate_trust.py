"""Reading and writing the Secret and the webhook configurations."""

from __future__ import annotations

import base64
import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from kubefoundry_core.certificate_secret import filled, read
from kubefoundry_core.certificates import Material, Unusable, renewed
from kubefoundry_core.webhook_configurations import (
    CONDITIONS,
    MUTATING,
    VALIDATING,
    covers,
    evaluates_conditions,
    patch,
)
from kubefoundry_sdk._api.kinds import Kind

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def material() -> Material:
    made = renewed(None, ("127.0.0.1",), NOW)
    assert made
    return made


def configuration(*bundles: bytes | None) -> dict[str, Any]:
    return {
        "metadata": {"name": "kubefoundry-core", "resourceVersion": "7"},
        "webhooks": [
            {
                "name": f"w{index}.kubefoundry.ai",
                "clientConfig": {"url": "https://127.0.0.1:1/"}
                | ({} if bundle is None else {"caBundle": base64.b64encode(bundle).decode()}),
            }
            for index, bundle in enumerate(bundles)
        ],
    }


def test_secret_returns_the_stored_material(material: Material) -> None:
    two = renewed(material, ("127.0.0.1",), NOW, new_authority=True)
    assert two

    secret = filled(two, None, "ns")

    assert read(secret) == two
    assert secret["type"] == "kubernetes.io/tls"
    assert secret["metadata"]["namespace"] == "ns"


def test_renewed_secret_keeps_foreign_metadata(material: Material) -> None:
    live = filled(material, None, "ns")
    live["metadata"] |= {"resourceVersion": "5", "labels": {"a": "b"}, "managedFields": [{}]}
    two = renewed(material, ("127.0.0.1",), NOW, new_authority=True)
    assert two

    after = filled(two, live, "ns")

    assert read(after) == two
    assert after["metadata"]["resourceVersion"] == "5"
    assert after["metadata"]["labels"] == {"a": "b"}
    assert "managedFields" not in after["metadata"]


@pytest.mark.parametrize("field", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
def test_secret_without_field_is_unusable(material: Material, field: str) -> None:
    secret = filled(material, None, "ns")
    del secret["data"][field]

    with pytest.raises(Unusable, match=field.replace(".", r"\.")):
        read(secret)


def test_secret_with_corrupt_certificate_is_unusable(material: Material) -> None:
    secret = filled(material, None, "ns")
    for value in ("%%%", base64.b64encode(b"no PEM").decode()):
        garbage = copy.deepcopy(secret)
        garbage["data"]["ca.crt"] = value

        with pytest.raises(Unusable):
            read(garbage)


def test_bundle_alone_is_applied_to_every_webhook(material: Material) -> None:
    body = patch(VALIDATING, configuration(material.bundle, None), material.bundle, conditions=False)

    encoded = base64.b64encode(material.bundle).decode()
    assert body == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "kubefoundry-core", "resourceVersion": "7"},
        "webhooks": [
            {"name": "w0.kubefoundry.ai", "clientConfig": {"caBundle": encoded}},
            {"name": "w1.kubefoundry.ai", "clientConfig": {"caBundle": encoded}},
        ],
    }


@pytest.mark.parametrize("blank", [None, b"", b"\n", b"another"])
def test_blanked_ca_bundle_is_restored(material: Material, blank: bytes | None) -> None:
    live = configuration(material.bundle, blank)

    assert not covers(live, material, NOW)
    assert patch(VALIDATING, live, material.bundle, conditions=False)


def test_configuration_is_not_patched_when_up_to_date(material: Material) -> None:
    live = configuration(material.bundle, material.bundle)

    assert covers(live, material, NOW)
    assert patch(VALIDATING, live, material.bundle, conditions=False) is None


@pytest.mark.parametrize("kind", [VALIDATING, MUTATING], ids=lambda kind: kind.kind)
def test_each_webhook_gets_the_condition_of_its_kind(material: Material, kind: Kind) -> None:
    condition = CONDITIONS[kind.kind]
    live = configuration(material.bundle, material.bundle)
    live["webhooks"][0]["matchConditions"] = [{"name": "somebody's", "expression": "true"}, condition]

    body = patch(kind, live, material.bundle, conditions=True)
    assert body is not None
    assert [webhook["matchConditions"] for webhook in body["webhooks"]] == [[condition]] * 2

    live["webhooks"][1]["matchConditions"] = [condition]
    assert patch(kind, live, material.bundle, conditions=True) is None


@pytest.mark.parametrize(
    ("version", "evaluates"),
    [
        ({"major": "1", "minor": "27"}, False),
        ({"major": "1", "minor": "28"}, True),
        ({"major": "1", "minor": "28+"}, True),
        ({"major": "1", "minor": "36"}, True),
        ({"major": "2", "minor": "0"}, True),
        ({}, False),
    ],
)
def test_conditions_are_for_servers_that_evaluate_them(version: dict[str, str], evaluates: bool) -> None:
    assert evaluates_conditions(version) is evaluates


def test_ca_bundle_without_base64_covers_nothing(material: Material) -> None:
    live = configuration(material.bundle)
    live["webhooks"][0]["clientConfig"]["caBundle"] = "%%%"

    assert not covers(live, material, NOW)
