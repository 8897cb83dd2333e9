"""A restored object is adopted only if that changes nothing that runs, and never from a living ModelDeployment."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.contract import Deployment
from kubefoundry_sdk._provider.reconcile import preconditions
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._runtime.store import Store
from support.contexts import context
from support.plans import deployment, planned

NEW = "uid-2"


def knowing(*uids: str) -> Context:
    """uids: of the ModelDeployments of the namespace."""
    deployments = Store()
    for number, uid in enumerate(uids):
        meta = {"name": f"m-{number}", "namespace": "n", "uid": uid, "resourceVersion": str(number + 1)}
        deployments.put({"metadata": meta})
    return context(deployments=deployments)


def restored(obj: Object) -> Object:
    """As a backup tool creates the object again: without owner and managedFields."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "ownerReferences"}
    return {**obj, "metadata": {**meta, "uid": "new", "resourceVersion": "7"}}


def recreated(spec: dict[str, Any] | None = None) -> Deployment:
    desired = deployment(spec)
    return Deployment(desired.name, desired.namespace, NEW, 1, desired.spec, raw_spec=desired.raw_spec)


def test_restored_object_is_adopted_when_the_spec_is_the_same() -> None:
    live = restored(planned(deployment()).main)

    assert preconditions.is_adoptable(knowing(NEW), recreated(), live)
    assert manifest.ownership(live, name="m", uid=NEW) == "foreign"


def test_object_of_a_living_deployment_is_not_restored() -> None:
    live = restored(planned(deployment()).main)

    assert not preconditions.is_restored(knowing(NEW, "uid"), recreated(), live)


def test_orphan_of_another_spec_is_not_adopted() -> None:
    live = restored(planned(deployment()).main)

    assert not preconditions.is_adoptable(knowing(NEW), recreated({"model": {"id": "org/other"}}), live)


@pytest.mark.parametrize("lost", ["labels", "annotations"])
def test_object_without_our_traces_is_not_adopted(lost: str) -> None:
    live = restored(planned(deployment()).main)
    live["metadata"][lost] = {}

    assert not preconditions.is_adoptable(knowing(NEW), recreated(), live)


def test_restored_helpers_follow_their_main_object() -> None:
    todo = planned(deployment())
    context = knowing(NEW)
    for helper in todo.helpers:
        context.helpers.store(helper).put(restored(helper))

    adopted = preconditions.helpers(context, recreated(), restored(todo.main))

    assert [obj["metadata"]["name"] for obj in adopted] == ["m-config"]
    assert preconditions.helpers(context, recreated(), None) == []


def test_adoption_changes_only_metadata() -> None:
    todo = planned(deployment())
    live = type(todo)(restored(todo.main), [restored(obj) for obj in todo.helpers], [])

    adopting = planned(recreated(), live)

    assert adopting.recreate is None
    assert [manifest.body(obj) for obj in adopting.objects] == [manifest.body(obj) for obj in todo.objects]
    assert all(manifest.owner_uid(obj) == NEW for obj in adopting.objects)
    assert adopting.changed == adopting.objects
