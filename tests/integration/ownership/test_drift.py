"""Others change an upstream object: values that the provider wrote are put back and reported, the rest stays."""

from __future__ import annotations

import statistics
import time
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import CPU, DISAGGREGATED, GPU
from support.edits import ADMIN, EDITS, Edit, nothing_more_is_done, running, until_upstream
from support.events import notes, until_event
from support.kinds import UPSTREAM
from support.status_owners import RELEASE, is_released_by_core
from support.waiting import message, phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

SECOND = 1.0
"""Within which drift is put back."""


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
async def test_changed_value_is_restored_and_reported_once(
    suite: Suite, api: Client, namespace: str, edit: Edit
) -> None:
    kind = UPSTREAM[edit.provider]
    await running(api, namespace, edit.spec, edit.provider)
    before = edit.read(await api.get(kind, "m", namespace))

    await api.json_patch(
        kind, "m", namespace, [{"op": "replace", "path": edit.pointer, "value": edit.value}], manager=ADMIN
    )

    await until_upstream(api, kind, namespace, lambda obj: edit.read(obj) == before)
    note = await until_event(api, namespace, "DriftDetected")
    assert note.startswith(f"Provider resource was modified directly, reconciling: {edit.field}")
    assert note.endswith(f" of {kind.kind} 'm' by {ADMIN}")
    await nothing_more_is_done(suite, api, namespace, edit.provider)
    assert await notes(api, namespace, "DriftDetected") == [note]


@pytest.mark.parametrize(
    ("name", "writer"),
    [
        # An atomic list is the admin's from then on.
        pytest.param("kaito image", ADMIN, id="kaito image"),
        # Who only removes something leaves no trace in managedFields; nobody else is accused.
        pytest.param("kaito label", "an unknown field manager", id="kaito label"),
        pytest.param("dynamo replicas", "an unknown field manager", id="dynamo replicas"),
        pytest.param("dynamo arguments", "an unknown field manager", id="dynamo arguments"),
        pytest.param("kuberay application", "an unknown field manager", id="kuberay application"),
    ],
)
async def test_removed_value_is_restored(
    suite: Suite, api: Client, namespace: str, name: str, writer: str
) -> None:
    edit = EDITS[name]
    kind = UPSTREAM[edit.provider]
    await running(api, namespace, edit.spec, edit.provider)
    before = edit.read(await api.get(kind, "m", namespace))

    await api.json_patch(kind, "m", namespace, [{"op": "remove", "path": edit.pointer}], manager=ADMIN)

    await until_upstream(api, kind, namespace, lambda obj: edit.read(obj) == before)
    note = await until_event(api, namespace, "DriftDetected")
    assert edit.field in note
    assert note.endswith(f" by {writer}")


async def test_drift_is_put_back_within_a_second(suite: Suite, api: Client, namespace: str) -> None:
    edit = EDITS["dynamo replicas"]
    kind = UPSTREAM[edit.provider]
    taken, answered = [], []
    for index in range(5):
        # One each: a sixth correction of the same object would be one too many.
        name = f"m-{index}"
        await running(api, namespace, edit.spec, edit.provider, name)
        change = [{"op": "replace", "path": edit.pointer, "value": edit.value}]
        start = time.perf_counter()
        await api.json_patch(kind, name, namespace, change, manager=ADMIN)
        answered.append(time.perf_counter() - start)

        await until(api, kind, name, namespace, lambda obj: edit.read(obj) == 1)

        taken.append(time.perf_counter() - start)
    # On a machine that takes its time for the change itself, a multiple of that.
    assert statistics.median(taken) < max(SECOND, 20 * statistics.median(answered))


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_removed_owner_is_restored(suite: Suite, api: Client, namespace: str, provider: str) -> None:
    kind = UPSTREAM[provider]
    await running(api, namespace, GPU, provider)
    before = (await api.get(kind, "m", namespace))["metadata"]

    await api.json_patch(
        kind, "m", namespace, [{"op": "remove", "path": "/metadata/ownerReferences"}], manager=ADMIN
    )

    after = await until_upstream(api, kind, namespace, lambda obj: "ownerReferences" in obj["metadata"])
    assert after["metadata"]["ownerReferences"] == before["ownerReferences"]
    assert after["metadata"]["uid"] == before["uid"]
    assert "metadata.ownerReferences" in await until_event(api, namespace, "DriftDetected")


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_removed_record_is_written_again(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    await running(api, namespace, GPU, provider)
    before = await api.get(kind, "m", namespace)
    pointer = "/metadata/annotations/" + names.APPLIED_ANNOTATION.replace("/", "~1")

    await api.json_patch(kind, "m", namespace, [{"op": "remove", "path": pointer}], manager=ADMIN)

    after = await until_upstream(
        api, kind, namespace, lambda obj: names.APPLIED_ANNOTATION in obj["metadata"]["annotations"]
    )
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_deleted_upstream_object_is_recreated(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    await running(api, namespace, GPU, provider)
    uid = (await api.get(kind, "m", namespace))["metadata"]["uid"]

    await api.delete(kind, "m", namespace, uid=uid)

    await until_upstream(api, kind, namespace, lambda obj: obj["metadata"]["uid"] != uid)
    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: phase(obj) == "Running" and reason(obj, "ResourceCreated") == "ResourceCreated",
    )


@pytest.mark.parametrize(
    ("provider", "spec"),
    [
        pytest.param("kaito", CPU, id="kaito llamacpp"),
        pytest.param("kaito", GPU, id="kaito preset"),
        pytest.param("dynamo", GPU, id="dynamo aggregated"),
        pytest.param("dynamo", DISAGGREGATED, id="dynamo disaggregated"),
        pytest.param("kuberay", GPU, id="kuberay aggregated"),
        pytest.param("kuberay", DISAGGREGATED, id="kuberay disaggregated"),
    ],
)
async def test_fields_filled_in_by_an_operator_are_no_drift(
    suite: Suite, api: Client, namespace: str, provider: str, spec: dict[str, Any]
) -> None:
    log = AuditLog(suite)
    await running(api, namespace, spec, provider)

    await nothing_more_is_done(suite, api, namespace, provider)

    # One apply made it; the operator's own rewriting is left alone.
    writes = log.writes(f"provider-{provider}", namespace, UPSTREAM[provider].plural)
    assert len([entry for entry in writes if "/m?" in entry]) == 1
    assert await notes(api, namespace, "DriftDetected") == []


GIVEN_UP = (
    "Someone keeps changing spec.services.VllmWorker.replicas of DynamoGraphDeployment 'm': reverted 5 times in "
    "10 minutes, now left alone for 10 minutes; the Events DriftDetected name the field manager"
)


async def test_drift_is_left_alone_after_five_corrections(suite: Suite, api: Client, namespace: str) -> None:
    edit = EDITS["dynamo replicas"]
    kind = UPSTREAM[edit.provider]
    await running(api, namespace, edit.spec, edit.provider)
    change = [{"op": "replace", "path": edit.pointer, "value": edit.value}]
    log = AuditLog(suite)

    await api.json_patch(kind, "m", namespace, change, manager="stubborn")
    for _ in range(5):
        await until_upstream(api, kind, namespace, lambda obj: edit.read(obj) == 1)
        await api.json_patch(kind, "m", namespace, change, manager="stubborn")

    left = await until_deployment(
        api, "m", namespace, lambda obj: message(obj, "ResourceCreated") == GIVEN_UP
    )
    assert (phase(left), left["status"]["observedGeneration"]) == ("Running", 0)
    assert message(left, "Ready").startswith(
        "The spec that serves may not be the newest: someone keeps changing spec.services.VllmWorker.replicas of "
        "DynamoGraphDeployment 'm', which is no longer reverted; "
    )
    assert await until_event(api, namespace, "DriftDetected", lambda note: note == GIVEN_UP)
    first = await until_event(api, namespace, "DriftDetected", lambda note: note != GIVEN_UP)
    assert first.endswith("by stubborn")
    assert len(log.writes("provider-dynamo", namespace, kind.plural)) == 5
    # However often the object changes from now on, neither it nor our status is written, and nothing is said.
    await nothing_more_is_done(suite, api, namespace, edit.provider)
    rest = await until_deployment(api, "m", namespace, is_released_by_core, seconds=RELEASE)
    version = rest["metadata"]["resourceVersion"]
    await nothing_more_is_done(suite, api, namespace, edit.provider, "latest")
    assert edit.read(await api.get(kind, "m", namespace)) == edit.value
    assert await notes(api, namespace, "DriftDetected") == [first, GIVEN_UP]
    assert (await api.get(MODEL_DEPLOYMENTS, "m", namespace))["metadata"]["resourceVersion"] == version
    # The user's own change goes through anyway, and with it what is ours.
    await api.json_patch(
        MODEL_DEPLOYMENTS,
        "m",
        namespace,
        [{"op": "add", "path": "/spec/scaling", "value": {"replicas": 2}}],
        manager="test",
    )
    await until_upstream(api, kind, namespace, lambda obj: edit.read(obj) == 2)
    await until_deployment(api, "m", namespace, lambda obj: message(obj, "ResourceCreated") != GIVEN_UP)
