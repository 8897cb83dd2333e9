"""The CRD moves to another version while an applied object exists."""

from __future__ import annotations

import pytest

from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.plan import Plan, plan
from support.plans import V2, changed, deployment, planned, provider


def moved(live: Plan, *, converts: bool, replicas: int = 1) -> Plan:
    """The plan after the move, for a ModelDeployment with that many replicas."""
    subject, desired = provider(), deployment({"scaling": {"replicas": replicas}})
    return plan(
        subject,
        desired,
        V2,
        subject.render(desired, V2),
        live.main,
        live.helpers,
        converts=converts,
    )


@pytest.mark.parametrize("converts", [True, False])
def test_version_move_alone_writes_nothing(converts: bool) -> None:
    todo = moved(planned(deployment()), converts=converts)

    assert (todo.changed, todo.drifted, todo.recreate) == ([], (), None)


@pytest.mark.parametrize("converts", [True, False])
def test_edit_after_version_move_is_written_in_new_version(converts: bool) -> None:
    todo = moved(planned(deployment()), converts=converts, replicas=3)

    assert changed(todo) == ["Engine"]
    assert (todo.main["apiVersion"], todo.main["spec"]["serve"]) == ("example.com/v2", 3)


def test_versions_that_differ_in_name_only_still_show_drift() -> None:
    live = planned(deployment())
    live.main["apiVersion"] = "example.com/v2"
    live.main["spec"]["context"] = 5

    todo = moved(live, converts=False)

    assert todo.drifted == ("spec.context",)
    assert todo.moved is None


def test_converted_object_shows_drift_in_its_version_only() -> None:
    live = planned(deployment())
    applied = manifest.content(live.main)

    todo = moved(live, converts=True)

    assert todo.moved == applied


def test_changed_helper_is_reverted_after_a_version_move() -> None:
    live = planned(deployment())
    live.helpers[0]["data"]["served"] = "theirs"

    todo = moved(live, converts=True)

    assert [(obj["kind"], paths) for obj, paths in todo.repairs] == [("ConfigMap", ("data.served",))]
