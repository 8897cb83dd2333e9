"""Requests about claims: how often, and what an error means for a model that is new or serves."""

from __future__ import annotations

import pytest

from kubefoundry_core.claims import AGAIN, Claims, Outcome
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CLAIMS
from kubefoundry_sdk._cluster.client import over
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk.testing._server.requests import Request
from kubefoundry_sdk.testing._server.transport import MemoryTransport
from support.claims import DENIED, KEY, TOO_BUSY, Rig, model


async def test_claims_of_a_running_model_are_read_once(rig: Rig) -> None:
    assert await rig.settle(model()) == Outcome()
    rig.now = 10 * AGAIN
    assert await rig.settle(model(phase="Running")) == Outcome()

    assert rig.requests == ["GET", "POST"]


async def test_claims_of_a_waiting_model_are_read_again_after_a_while(rig: Rig) -> None:
    await rig.settle(model())
    rig.now = 1.0
    soon = await rig.settle(model())
    rig.now = AGAIN
    later = await rig.settle(model())

    assert soon == Outcome("", AGAIN - 1.0)
    assert later == Outcome()
    assert rig.requests == ["GET", "POST", "GET"]


async def test_changed_template_is_settled_at_once(rig: Rig) -> None:
    await rig.settle(model())
    await rig.settle(model(size="2Gi", phase="Running"))

    claim = await rig.client.get(CLAIMS, "m-weights", "n")
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"


async def test_changed_status_or_label_causes_no_request(rig: Rig) -> None:
    await rig.settle(model())
    await rig.settle(model(is_validated=True, annotation="other"))

    assert rig.requests == ["GET", "POST"]


async def test_refused_claim_is_not_requested_again_before_its_time(rig: Rig) -> None:
    rig.error = DENIED
    first = await rig.settle(model())
    second = await rig.settle(model())

    assert first.problem.endswith("cannot be read. The API server answers: exceeded quota: q")
    assert first.wait is not None
    assert second == first
    assert rig.requests == ["GET"]


@pytest.mark.parametrize("error", [TOO_BUSY, DENIED])
async def test_first_error_does_not_reject_a_model_that_serves(rig: Rig, error: ApiError) -> None:
    rig.error = error
    outcome = await rig.settle(model(phase="Running", is_validated=True))

    assert outcome.problem == ""
    assert outcome.wait is not None


@pytest.mark.parametrize(("error", "is_reported"), [(TOO_BUSY, False), (DENIED, True)])
async def test_only_a_lasting_error_rejects_a_model_that_serves(
    rig: Rig, error: ApiError, is_reported: bool
) -> None:
    rig.error = error
    for _ in range(3):
        outcome = await rig.settle(model(phase="Running", is_validated=True))
        rig.now += 1000.0

    assert bool(outcome.problem) == is_reported


async def test_error_that_has_passed_lets_the_model_go_on(rig: Rig) -> None:
    rig.error = TOO_BUSY
    await rig.settle(model())
    rig.error, rig.now = None, 1000.0

    assert await rig.settle(model()) == Outcome()
    assert rig.requests == ["GET", "GET", "POST"]


async def test_conflict_is_tried_again(rig: Rig) -> None:
    await rig.settle(model())

    def change(request: Request) -> None:
        if request.method == "PATCH":
            raise ApiError(409, "Conflict", "changed meanwhile")

    transport = MemoryTransport(rig.server, user_agent="t", asked=change)
    claims = Claims(over(rig.client, transport), rig.recorder, lambda: 0.0)
    outcome = await claims.settle(KEY, model(size="2Gi"))

    assert outcome.problem.endswith("The API server answers: changed meanwhile")
    assert outcome.wait is not None
    assert outcome.wait < 1.0


@pytest.mark.parametrize(("is_validated", "problem"), [(True, ""), (False, "waits for the end of the pause")])
async def test_pause_sends_no_request(rig: Rig, is_validated: bool, problem: str) -> None:
    paused = model(is_validated=is_validated, annotation=names.PAUSED_ANNOTATION)

    outcome = await rig.settle(paused)

    assert outcome.problem.endswith(problem)
    assert rig.requests == []


async def test_dry_run_stores_nothing_and_its_end_creates_the_claim(rig: Rig) -> None:
    tried = await rig.settle(model(annotation=names.DRY_RUN_ANNOTATION))
    with pytest.raises(ApiError):
        await rig.client.get(CLAIMS, "m-weights", "n")
    await rig.settle(model())

    assert tried == Outcome()
    assert await rig.client.get(CLAIMS, "m-weights", "n")


@pytest.mark.parametrize("is_validated", [True, False])
async def test_deleted_claim_is_created_again_after_the_pods_ended(rig: Rig, is_validated: bool) -> None:
    await rig.settle(model())
    held = [{"op": "add", "path": "/metadata/finalizers", "value": ["kubernetes.io/pvc-protection"]}]
    before = await rig.client.json_patch(CLAIMS, "m-weights", "n", held, manager="t")
    await rig.client.delete(CLAIMS, "m-weights", "n", uid=before["metadata"]["uid"])
    rig.restart()

    during = []
    for _ in range(3):
        during.append(await rig.settle(model(phase="Running", is_validated=is_validated)))
        rig.now += 2 * AGAIN
    free = [{"op": "remove", "path": "/metadata/finalizers"}]
    await rig.client.json_patch(CLAIMS, "m-weights", "n", free, manager="t")
    after = await rig.settle(model(phase="Running", is_validated=is_validated))

    assert [outcome.problem for outcome in during] == ["", "", ""]
    assert all(outcome.wait is not None for outcome in during)
    assert after == Outcome()
    claim = await rig.client.get(CLAIMS, "m-weights", "n")
    assert claim["metadata"]["uid"] != before["metadata"]["uid"]


@pytest.mark.parametrize(
    ("reason", "problem"), [("ClaimNotReady", "the claim cannot be used"), ("ValidationFailed", "")]
)
async def test_deletion_keeps_the_problem_of_a_claim(rig: Rig, reason: str, problem: str) -> None:
    live = model()
    live["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "generation": 2}
    verdict = {
        "type": "Validated",
        "status": "False",
        "reason": reason,
        "message": "the claim cannot be used",
    }
    live["status"]["conditions"] = [{**verdict, "observedGeneration": 1}]

    assert await rig.settle(live) == Outcome(problem)
    assert rig.requests == []
