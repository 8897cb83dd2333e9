"""Waiting for another provider's clean-up."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api.handover import in_charge
from kubefoundry_sdk._api.managed_fields import compact
from kubefoundry_sdk._provider.reconcile.handover import other_holders, timed_out
from kubefoundry_sdk._runtime.wait import Wait

TIMEOUT = 300.0
WHAT = ("u", "dynamo")


@pytest.mark.parametrize(
    ("finalizers", "expected"),
    [
        (None, []),
        (["kubefoundry.ai/kaito-provider"], []),
        (["kubefoundry.ai/dynamo-provider", "kubefoundry.ai/kaito-provider"], ["dynamo"]),
        (["kubefoundry.ai/my-own-provider", "kubefoundry.ai/dynamo-provider"], ["my-own", "dynamo"]),
        (["foregroundDeletion", "kubefoundry.ai/provider", "example.com/dynamo-provider"], []),
    ],
)
def test_other_holders_are_named_by_their_finalizers(
    finalizers: list[str] | None, expected: list[str]
) -> None:
    assert other_holders({"metadata": {"finalizers": finalizers}}, "kaito") == expected


@pytest.mark.parametrize(
    ("chosen", "holders", "expected"),
    [
        ("kaito", [], "kaito"),
        ("kaito", ["dynamo"], "kaito"),
        (None, ["dynamo"], "dynamo"),
        (None, ["dynamo", "kaito"], "dynamo"),
        ("", ["dynamo"], "dynamo"),
        (None, [], None),
    ],
)
def test_holder_is_in_charge_of_an_emptied_status(
    chosen: str | None, holders: list[str], expected: str | None
) -> None:
    finalizers = [f"kubefoundry.ai/{name}-provider" for name in holders]
    status = {} if chosen is None else {"provider": {"name": chosen}}

    assert in_charge({"metadata": {"finalizers": finalizers}, "status": status}) == expected


FORGED = [("kuberay", "dynamo"), ("dynamo", "kuberay"), ("kuberay",)]


@pytest.mark.parametrize("fields", [{"f:phase": {}}, {"f:provider": {"f:resourceKind": {}}, "f:phase": {}}])
@pytest.mark.parametrize("finalizers", FORGED)
def test_provider_that_owns_the_phase_is_in_charge(
    finalizers: tuple[str, ...], fields: dict[str, Any]
) -> None:
    """The store keeps the proof."""
    managed = [
        {"manager": "kuberay-provider", "operation": "Apply", "subresource": "", "fieldsV1": {}},
        {
            "manager": "dynamo-provider",
            "operation": "Apply",
            "subresource": "status",
            "fieldsV1": {"f:status": fields},
        },
    ]
    metadata = {"finalizers": [f"kubefoundry.ai/{name}-provider" for name in finalizers]}

    assert in_charge({"metadata": {**metadata, "managedFields": managed}}) == "dynamo"
    assert in_charge({"metadata": {**metadata, "managedFields": compact(managed, frozenset())}}) == "dynamo"


FINALIZER = 'v:"kubefoundry.ai/dynamo-provider"'


@pytest.mark.parametrize(
    ("managers", "chosen", "expected"),
    [
        pytest.param({}, None, ["dynamo"], id="managedFields were reset"),
        pytest.param({"before-first-apply": [FINALIZER]}, "kaito", ["dynamo"], id="reset, and applied since"),
        pytest.param({"dynamo-provider": [FINALIZER]}, None, ["dynamo"], id="its own"),
        pytest.param({"kubectl": [FINALIZER], "dynamo-provider": [FINALIZER]}, None, ["dynamo"], id="both"),
        pytest.param({"kubectl": [FINALIZER], "dynamo-provider": []}, None, ["dynamo"], id="it reported"),
        pytest.param({"kubectl": [FINALIZER]}, "dynamo", ["dynamo"], id="it is chosen"),
        pytest.param({"kubectl": [FINALIZER]}, "kaito", [], id="planted"),
        pytest.param({"kubectl": [FINALIZER]}, None, [], id="planted before a selection"),
        pytest.param({"kubectl": []}, "kaito", ["dynamo"], id="nobody owns it"),
    ],
)
def test_planted_finalizer_is_not_waited_for(
    managers: dict[str, list[str]], chosen: str | None, expected: list[str]
) -> None:
    managed = [
        {
            "manager": name,
            "operation": "Update",
            "fieldsV1": {"f:metadata": {"f:finalizers": {key: dict[str, Any]() for key in keys}}},
        }
        for name, keys in managers.items()
    ]
    deployment: dict[str, Any] = {
        "metadata": {"finalizers": ["kubefoundry.ai/dynamo-provider"], "managedFields": managed},
        "status": {"provider": {"name": chosen}} if chosen else {},
    }
    stored = {
        **deployment,
        "metadata": {**deployment["metadata"], "managedFields": compact(managed, frozenset())},
    }

    assert other_holders(deployment, "kaito") == expected
    assert other_holders(stored, "kaito") == expected


def test_handover_wait_ends_after_timeout_from_first_sight() -> None:
    wait = Wait()

    assert wait.left(WHAT, TIMEOUT, 100.0) == TIMEOUT
    assert wait.left(WHAT, TIMEOUT, 100.0 + TIMEOUT - 1) == 1
    assert wait.left(WHAT, TIMEOUT, 100.0 + TIMEOUT) == 0


@pytest.mark.parametrize(
    "what",
    [("recreated", "dynamo"), ("u", "kuberay"), ("u",)],
)
def test_wait_restarts_for_another_object_or_holder(what: tuple[str, ...]) -> None:
    wait = Wait()
    wait.left(WHAT, TIMEOUT, 0.0)

    assert wait.left(what, TIMEOUT, 200.0) == TIMEOUT


def test_handover_wait_starts_again_after_reset() -> None:
    wait = Wait()
    wait.left(WHAT, TIMEOUT, 0.0)

    wait.reset()

    assert wait.left(WHAT, TIMEOUT, 200.0) == TIMEOUT


def test_giving_up_names_who_did_not_clean_up_and_what_to_do() -> None:
    assert timed_out(["dynamo"], TIMEOUT) == (
        "Provider dynamo has not cleaned up in 300 s; continuing without it. "
        "Its objects may still run: delete them yourself"
    )
