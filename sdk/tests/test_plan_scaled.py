"""Counts that an autoscaler writes on the main object, and the user's own."""

from __future__ import annotations

from dataclasses import replace

from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.write.plan import Plan
from support.plans import changed, deployment, planned, provider


def scaling(default_image: str = "default:1") -> Provider:
    return replace(provider(default_image), scaled=("spec.serve",))


def scaled(count: int) -> Plan:
    """What lives upstream after an autoscaler's change of an object that was made with one replica."""
    live = planned(deployment(), subject=scaling())
    live.main["spec"]["serve"] = count
    return live


def test_count_of_an_autoscaler_is_no_drift() -> None:
    todo = planned(deployment(), scaled(5), scaling())

    assert (todo.changed, todo.drifted, todo.repairs) == ([], (), [])


def test_scaled_count_stays_when_another_field_changes() -> None:
    todo = planned(deployment({"image": "other:1"}), scaled(5), scaling())

    assert changed(todo) == ["Engine"]
    assert (todo.main["spec"]["serve"], todo.main["spec"]["groups"][0]["image"]) == (5, "other:1")


def test_scaled_count_stays_when_defaults_are_refreshed() -> None:
    asked = deployment(annotations={"kubefoundry.ai/refresh": "1"})

    todo = planned(asked, scaled(5), scaling("default:2"))

    assert (todo.main["spec"]["serve"], todo.main["spec"]["groups"][0]["image"]) == (5, "default:2")


def test_count_of_the_user_replaces_the_autoscalers() -> None:
    todo = planned(deployment({"scaling": {"replicas": 3}}), scaled(5), scaling())

    assert todo.main["spec"]["serve"] == 3
