"""The steps of a reconcile, each by itself, and the loop that takes them (contract §4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk._api import managed_fields
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.contract import Deployment, Endpoint, Observation, Rendered, Replicas
from kubefoundry_sdk._provider.reconcile import failures, guards, removal, writes
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.reconciler import CLOSING, GUARDS, STEPS, WRITES, reconcile
from kubefoundry_sdk._provider.reconcile.turn import End, Turn
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.watch.upstream import AGAIN, Upstream
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.refusals import Refused
from support.contexts import context
from support.plans import SPEC, deployment, planned, provider
from support.wire import Asked, Wire, ok, refusal, wire

KEY = ("n", "m")
MANAGER = "example-provider"
CRD: Object = {
    "metadata": {"name": "engines.example.com"},
    "spec": {"versions": [{"name": "v1", "served": True, "storage": True}]},
}
SERVES = Observation(
    "Running", "DeploymentReady", "2 of 3 replicas serve", Replicas(3, 2, 2), Endpoint("m", 80)
)


def model(spec: dict[str, Any] | None = None, *, chosen: str = "example", **metadata: Any) -> Object:
    """A ModelDeployment with our finalizer. Core has validated its generation 1, and we have accepted it."""
    accepted = 'k:{"type":"ProviderCompatible"}'
    meta = {
        "name": "m",
        "namespace": "n",
        "uid": "uid",
        "generation": 1,
        "resourceVersion": "100",
        "finalizers": ["kubefoundry.ai/example-provider"],
        "managedFields": [
            {
                "manager": MANAGER,
                "operation": "Apply",
                "subresource": "status",
                "fieldsV1": {"f:status": {"f:conditions": {accepted: {"f:status": {}}}}},
            }
        ],
        **metadata,
    }
    conditions = [
        {"type": type_, "status": "True", "reason": reason, "message": "", "observedGeneration": 1}
        for type_, reason in (
            ("Validated", "ValidationPassed"),
            ("ProviderCompatible", "CompatibilityVerified"),
        )
    ]
    status = {"provider": {"name": chosen}, "conditions": conditions}
    named = {"apiVersion": "kubefoundry.ai/v1alpha1", "kind": "ModelDeployment"}
    return {**named, "metadata": meta, "spec": {**SPEC, **(spec or {})}, "status": status}


def stored(obj: Object, version: int) -> Object:
    """An object that we have applied, as the API server returns it."""
    owned: Object = {f"f:{key}": {} for key in obj if key not in ("apiVersion", "kind", "metadata")}
    managed = [{"manager": MANAGER, "operation": "Apply", "fieldsV1": owned}]
    meta = {"uid": f"u-{version}", "generation": 1, "resourceVersion": str(version), "managedFields": managed}
    return {**obj, "metadata": {**obj["metadata"], **meta}}


def stored_by_server(asked: Asked) -> web.Response:
    """Accept a write, and store the object with the fields of the request, which its manager then owns."""
    meta = {"uid": "uid", "generation": 1, **asked.body["metadata"], "resourceVersion": "200"}
    if status := asked.body.get("status"):
        fields = {"f:status": managed_fields.fields_of(status)}
        entry = {"manager": MANAGER, "operation": "Apply", "subresource": "status", "fieldsV1": fields}
        meta["managedFields"] = [entry]
    return ok({**model(), **asked.body, "metadata": meta})


def reconciled(live: Object | None, client: Any = None, *, crd: Object | None = CRD, **parts: Any) -> Context:
    """The context of a provider whose upstream objects are listed."""
    process = Process("t", options.parser("t", "").parse_args([]), client)
    upstream = Upstream(process, provider(), MANAGER, lambda: None)
    upstream.replace([crd] if crd else [], "1")
    upstream.objects.replace([], "1")
    held = context(client=client, upstream=upstream, recorder=process.recorder, **parts)
    if live is not None:
        held.deployments.put(live)
    return held


def serve(held: Context) -> None:
    """Store the objects that our last apply, of the plain spec, has left upstream."""
    plan = planned(deployment())
    held.upstream.objects.put(stored(plan.main, 50))
    for helper in plan.helpers:
        held.helpers.store(helper).put(stored(helper, 51))


async def taken(turn: Turn, *until: Any) -> Turn:
    """A turn after the steps before those given, none of which ended it."""
    for step in STEPS:
        if step in until:
            return turn
        assert await step(turn) is None, step
    raise AssertionError("no such step")


@pytest.fixture
async def nobody() -> AsyncIterator[Wire]:
    """A server that no step may ask."""
    async with wire(lambda asked: refusal(500, "InternalError", "nothing may be sent")) as api:
        yield api
        assert api.asked == []


async def test_removed_finalizer_is_added_again() -> None:
    async with wire(stored_by_server) as api:
        held = reconciled(model(finalizers=[]), api.client)
        serve(held)

        end = await guards.keep_finalizer(Turn(held, KEY))

    assert end is None
    [asked] = api.asked
    assert asked.body["metadata"]["finalizers"] == ["kubefoundry.ai/example-provider"]


async def test_deletion_of_an_object_ends_the_delay(nobody: Wire) -> None:
    """The state of the clean-up changes when the upstream object, or a helper, begins to go."""
    held = reconciled(model(), nobody.client)
    serve(held)
    helper = planned(deployment()).helpers[0]
    states = [removal.state(held, model())]

    for obj, store in (
        (held.upstream.objects.get(KEY), held.upstream.objects),
        (stored(helper, 51), held.helpers.store(helper)),
    ):
        assert obj is not None
        going = {"deletionTimestamp": "2026-03-01T00:00:00Z", "resourceVersion": "60"}
        store.put({**obj, "metadata": {**obj["metadata"], **going}})
        states.append(removal.state(held, model()))

    assert [len(set(map(str, states[:count]))) for count in (1, 2, 3)] == [1, 2, 3]


async def test_missing_model_ends_without_a_report(nobody: Wire) -> None:
    held = reconciled(None, nobody.client)
    held.memory(KEY)

    assert await guards.forget_missing(Turn(held, KEY)) == End(reports=False)
    assert held.memories == {}


async def test_deletion_waits_while_the_upstream_is_not_listed(nobody: Wire) -> None:
    held = reconciled(model(deletionTimestamp="2026-03-01T00:00:00Z"), nobody.client)
    held.upstream.objects.clear()

    end = await guards.wait_until_listed(Turn(held, KEY))

    assert end is not None and not end.reports
    assert end.retry == pytest.approx(300.1)


@pytest.mark.parametrize(
    ("value", "end"), [("true", End(reports=False)), ("false", None), ("yes", None)], ids=str
)
async def test_pause_ends_without_a_report(nobody: Wire, value: str, end: End | None) -> None:
    live = model(annotations={"kubefoundry.ai/reconcile-paused": value}, managedFields=[])
    held = reconciled(live, nobody.client)

    assert await guards.stop_if_paused(Turn(held, KEY)) == end


async def test_model_of_another_provider_is_let_go(nobody: Wire) -> None:
    held = reconciled(model(chosen="another", finalizers=[], managedFields=[]), nobody.client)

    assert await guards.release_deployment(Turn(held, KEY)) == End(reports=False)


async def test_failed_write_waits_for_its_retry(nobody: Wire) -> None:
    held = reconciled(model(), nobody.client)
    turn = await taken(Turn(held, KEY), writes.require_validation)
    error = ApiError(422, "Invalid", "no")
    turn.memory.failures.note(
        turn.mark, "", error, turn.report, failures.stop(held.provider, error), turn.now
    )

    again = await taken(Turn(held, KEY), guards.wait_for_retry)
    end = await guards.wait_for_retry(again)

    assert end is not None and end.reports
    assert end.retry == pytest.approx(300.0, abs=1.0)
    assert again.report.stop == turn.report.stop


async def test_unvalidated_generation_ends_the_writing(nobody: Wire) -> None:
    turn = await taken(Turn(reconciled(model(generation=2), nobody.client), KEY), writes.require_validation)

    assert await writes.require_validation(turn) == End()
    assert (turn.report.stop, turn.report.generation) == (None, 2)


async def test_validated_generation_is_read(nobody: Wire) -> None:
    turn = await taken(Turn(reconciled(model(), nobody.client), KEY), writes.require_validation)

    assert await writes.require_validation(turn) is None
    assert turn.deployment.spec.model.id == "org/m"


async def test_unsupported_spec_ends_the_writing(nobody: Wire) -> None:
    live = model({"resources": {"gpu": {"count": 0}}})
    turn = await taken(Turn(reconciled(live, nobody.client), KEY), writes.check_compatibility)

    assert await writes.check_compatibility(turn) == End()
    assert turn.report.stop is not None and turn.report.stop.reason == "Unsupported"


async def test_missing_crd_ends_the_writing(nobody: Wire) -> None:
    turn = await taken(Turn(reconciled(model(), nobody.client, crd=None), KEY), writes.require_crd)

    assert await writes.require_crd(turn) == End()
    assert turn.report.stop is not None and turn.report.stop.reason == "CRDNotInstalled"


async def test_object_of_somebody_else_ends_the_writing(nobody: Wire) -> None:
    held = reconciled(model(), nobody.client)
    held.upstream.objects.put(stored({"kind": "Engine", "metadata": {"name": "m", "namespace": "n"}}, 50))
    turn = await taken(Turn(held, KEY), writes.check_ownership)

    assert await writes.check_ownership(turn) == End()
    assert turn.report.stop is not None and turn.report.stop.reason == "NameConflict"


async def test_plan_of_an_applied_spec_changes_nothing(nobody: Wire) -> None:
    held = reconciled(model(), nobody.client)
    serve(held)
    turn = await taken(Turn(held, KEY), writes.plan_changes)

    assert await writes.plan_changes(turn) is None
    assert (turn.plan.changed, turn.plan.repairs) == ([], [])


async def test_rejected_objects_wait_for_their_retry(nobody: Wire) -> None:
    held = reconciled(model(), nobody.client)
    first = await taken(Turn(held, KEY), writes.take_over)
    first.memory.refusal.remember(first.digest, first.now, Refused("denied by a policy", 300.0))

    turn = await taken(Turn(held, KEY), writes.wait_after_refusal)
    end = await writes.wait_after_refusal(turn)

    assert end is not None and end.reports
    assert end.retry == pytest.approx(300.0, abs=1.0)
    assert turn.report.stop is not None and turn.report.stop.message == "denied by a policy"


async def test_change_in_place_recreates_nothing(nobody: Wire) -> None:
    held = reconciled(model({"scaling": {"replicas": 2}}), nobody.client)
    serve(held)
    turn = await taken(Turn(held, KEY), writes.start_recreation)

    assert await writes.start_recreation(turn) is None


def test_steps_are_those_of_the_three_groups() -> None:
    assert (*GUARDS, *WRITES, *CLOSING) == STEPS
    assert len({step.__doc__ for step in STEPS}) == len(STEPS)


def observed(deployment: Deployment, live: Object) -> Observation:
    return SERVES


def unrendered(deployment: Deployment, schema: Schema) -> Rendered:
    raise ValueError("internal error of the provider")


def rejected(code: int, reason: str) -> Callable[[Asked], web.Response]:
    """A server that stores status and metadata of a ModelDeployment and rejects all else."""

    def answer(asked: Asked) -> web.Response:
        return stored_by_server(asked) if "modeldeployments" in asked.path else refusal(code, reason)

    return answer


EDIT = model({"scaling": {"replicas": 2}})


@pytest.mark.parametrize(
    ("live", "parts", "answer", "reason"),
    [
        pytest.param(model(), {}, stored_by_server, "ResourceCreated", id="nothing to write"),
        pytest.param(EDIT, {}, stored_by_server, "ResourceCreated", id="applied"),
        pytest.param(EDIT, {}, rejected(422, "Invalid"), "ApplyRejected", id="rejected"),
        pytest.param(EDIT, {}, rejected(500, "InternalError"), None, id="failed, and tried again"),
        pytest.param(EDIT, {}, rejected(409, "Conflict"), None, id="written by somebody else"),
        pytest.param(EDIT, {"render": unrendered}, stored_by_server, "ProviderError", id="internal error"),
        pytest.param(model(generation=2), {}, stored_by_server, None, id="not validated"),
        pytest.param(
            model(annotations={"kubefoundry.ai/dry-run": "true"}),
            {},
            stored_by_server,
            "DryRun",
            id="dry run",
        ),
    ],
)
async def test_each_end_of_the_writing_is_observed_and_reported(
    live: Object, parts: dict[str, Any], answer: Callable[[Asked], web.Response], reason: str | None
) -> None:
    async with wire(answer) as api:
        held = reconciled(
            live, api.client, provider=replace(provider(), observe=observed, settles=0.0, **parts)
        )
        serve(held)

        await reconcile(held, KEY)

        written = [asked for asked in api.asked if asked.path.endswith("/modeldeployments/m/status")]
    assert len(written) == 1
    status = written[0].body["status"]
    assert status["replicas"] == {"desired": 3, "ready": 2, "available": 2}
    reasons = {item["type"]: item["reason"] for item in status["conditions"]}
    assert reasons.get("ResourceCreated") == reason
    assert reasons["Ready"] == "DeploymentReady"


async def test_retry_that_is_not_due_is_observed_and_reported() -> None:
    async with wire(rejected(422, "Invalid")) as api:
        held = reconciled(EDIT, api.client, provider=replace(provider(), observe=observed))
        serve(held)
        await reconcile(held, KEY)
        sent = len(api.asked)
        held.deployments.put({**EDIT, "metadata": {**EDIT["metadata"], "resourceVersion": "300"}})

        retry = await reconcile(held, KEY)

        again = [asked.path for asked in api.asked[sent:]]
    assert retry == pytest.approx(AGAIN, abs=1.0)
    assert [path.rpartition("/")[2] for path in again] == ["status"]


async def test_end_before_the_writing_reports_nothing(nobody: Wire) -> None:
    held = reconciled(model(chosen="another", finalizers=[], managedFields=[]), nobody.client)

    assert await reconcile(held, KEY) is None
