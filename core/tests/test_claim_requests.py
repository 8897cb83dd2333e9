"""Requests about claims that are slow, fail for a while, or whose claim admission changes."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from kubefoundry_core.claims import QUICK, Claims, Outcome
from kubefoundry_sdk._api.kinds import CLAIMS, EVENTS, Object
from kubefoundry_sdk._cluster.client import Client, over
from kubefoundry_sdk._cluster.errors import ApiError, Fenced, Unreachable
from kubefoundry_sdk.testing._server.transport import MemoryTransport
from support.claims import KEY, Rig, model


@pytest.mark.parametrize("is_validated", [False, True])
async def test_unanswered_request_is_reported_unless_model_is_valid(rig: Rig, is_validated: bool) -> None:
    rig.error = Unreachable("POST /x: no answer within 30 s")
    outcome = await rig.settle(model(is_validated=is_validated))

    assert outcome.problem.endswith("The API server does not answer: POST /x: no answer within 30 s") == (
        not is_validated
    )
    assert outcome.wait is not None


class Slow(MemoryTransport):
    """A transport whose creations wait for `gate`."""

    gate: asyncio.Event

    async def exchange(self, method: str, *args: Any, **options: Any) -> bytearray:
        if method == "POST":
            await self.gate.wait()
        return await super().exchange(method, *args, **options)


@pytest.fixture
async def slow(rig: Rig) -> Rig:
    transport = Slow(rig.server, user_agent="t", asked=rig.asked)
    transport.gate = rig.gate
    rig.claims = Claims(over(rig.client, transport), rig.recorder, lambda: rig.now, rig.again.put_nowait)
    return rig


async def test_slow_creation_is_reported_and_its_end_reconciles_again(slow: Rig) -> None:
    waiting = await slow.settle(model())
    slow.gate.set()
    key = await slow.again.get()

    assert waiting == Outcome(
        "volume weights of model.storage: PersistentVolumeClaim m-weights is being created"
    )
    assert key == KEY
    assert (await slow.settle(model())).problem == ""
    assert slow.requests == ["GET", "POST"]


async def test_slow_creation_does_not_reject_a_model_that_serves(slow: Rig) -> None:
    assert await slow.settle(model(phase="Running", is_validated=True)) == Outcome()
    slow.gate.set()
    await slow.again.get()


async def test_nothing_waits_behind_a_slow_creation(slow: Rig) -> None:
    await slow.settle(model())
    begun = time.monotonic()
    outcomes = [await slow.claims.settle(("n", f"m{number}"), model()) for number in range(20)]
    taken = time.monotonic() - begun

    assert {outcome.problem for outcome in outcomes} == {
        "volume weights of model.storage: PersistentVolumeClaim m-weights waits for the API server's answers about "
        "other claims"
    }
    assert taken < QUICK
    await ended(slow.claims)


async def test_end_of_the_leadership_cancels_the_requests(slow: Rig) -> None:
    settling = asyncio.create_task(slow.settle(model()))
    await asyncio.sleep(0)
    await ended(slow.claims)

    with pytest.raises(Fenced):
        await settling
    slow.gate.set()
    assert (await slow.settle(model())).problem == ""


async def ended(claims: Claims) -> None:
    """End the leadership of a replica."""
    leading = asyncio.create_task(claims.run())
    await asyncio.sleep(0)
    leading.cancel()
    await asyncio.wait([leading])


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
@pytest.mark.parametrize(
    "error",
    [
        ApiError(404, "NotFound", 'namespaces "n" not found'),
        ApiError(409, "AlreadyExists", "already exists"),
        ApiError(409, "Conflict", 'Operation cannot be fulfilled on resourcequotas "q"'),
        ApiError(422, "Invalid", "the server rejected our request due to an error in our request"),
        ApiError(429, "TooManyRequests", "too many"),
        ApiError(500, "InternalError", "failed calling webhook"),
        ApiError(504, "Timeout", "timeout"),
        Unreachable("no answer within 30 s"),
    ],
    ids=str,
)
async def test_error_that_passes_gets_no_remedy(rig: Rig, method: str, error: ApiError | Unreachable) -> None:
    if method == "PATCH":
        await rig.settle(model())
    rig.failing, rig.error = method, error
    new = await rig.settle(model(size="2Gi"))
    if method == "GET" and isinstance(error, ApiError) and error.not_found:
        assert new == Outcome()
        return
    rig.now = 1000.0
    later = await rig.settle(model(size="2Gi", is_validated=True, phase="Running"))

    verb = {"GET": "read", "POST": "created", "PATCH": "changed"}[method]
    assert (
        f"PersistentVolumeClaim m-weights could not be {verb}, which is tried again. The API" in new.problem
    )
    assert new.problem.endswith(str(error).rpartition(": ")[2])
    assert later.problem == ""
    assert later.wait is not None


@pytest.mark.parametrize(
    ("words", "is_permission"),
    [
        (
            'User "system:serviceaccount:s:c" cannot get resource "persistentvolumeclaims" in API group ""',
            True,
        ),
        ("ValidatingAdmissionPolicy 'p' denied request: StorageClass \"fast\" cannot be used here", False),
        ('exceeded quota: q, is forbidden: User "x" cannot', False),
    ],
)
async def test_missing_permission_is_no_other_quoted_refusal(
    rig: Rig, words: str, is_permission: bool
) -> None:
    message = f'persistentvolumeclaims "m-weights" is forbidden: {words}'
    rig.error = ApiError(403, "Forbidden", message)
    outcome = await rig.settle(model())

    assert outcome.problem.endswith(f". The API server answers: {message}")
    assert ("manifests/claims" in outcome.problem) == is_permission


def of_class(storage_class: str, size: str = "1Gi") -> Object:
    live = model(size=size)
    live["spec"]["model"]["storage"]["volumes"][0]["claimTemplate"]["storageClassName"] = storage_class
    return live


class Admission(MemoryTransport):
    """A transport to an API server whose admission puts a part of written claims back."""

    webhook: Client
    changes: tuple[Object, ...] = ()

    async def exchange(self, method: str, url: str, *args: Any, **options: Any) -> bytearray:
        answer = await super().exchange(method, url, *args, **options)
        if method in ("POST", "PATCH") and self.changes:
            stored = await self.webhook.json_patch(
                CLAIMS, "m-weights", "n", list(self.changes), manager="webhook"
            )
            return bytearray(json.dumps(stored).encode())
        return answer


@pytest.fixture
async def admission(rig: Rig) -> Admission:
    transport = Admission(rig.server, user_agent="t", asked=rig.asked)
    transport.webhook = over(rig.client, MemoryTransport(rig.server, user_agent="w"))
    rig.claims = Claims(over(rig.client, transport), rig.recorder, lambda: rig.now)
    return transport


async def enlargements(rig: Rig) -> int:
    """Return the number of Events that report an enlargement."""
    sending = asyncio.create_task(rig.recorder.run())
    await asyncio.sleep(0)
    sending.cancel()
    await asyncio.wait([sending])
    events, _ = await rig.client.list(EVENTS, "n")
    return [event["reason"] for event in events].count("ClaimEnlarged")


async def test_claim_that_admission_changes_at_creation_is_reported(rig: Rig, admission: Admission) -> None:
    admission.changes = ({"op": "add", "path": "/spec/storageClassName", "value": "other"},)
    first = await rig.settle(of_class("fast"))
    rig.now = 1000.0
    again = await rig.settle(of_class("fast"))

    assert first.problem == (
        "volume weights of model.storage: PersistentVolumeClaim 'm-weights' was accepted, but spec.storageClassName "
        "was not stored as sent: an admission webhook or policy changes it; exempt persistentvolumeclaims from that "
        "and delete the claim, or name it in claimName"
    )
    assert again.problem == first.problem
    rig.now = 2000.0
    assert (await rig.settle(of_class("other"))).problem == ""


async def test_size_reset_by_admission_is_reported_and_rarely_sent(rig: Rig, admission: Admission) -> None:
    await rig.settle(model())
    admission.changes = ({"op": "add", "path": "/spec/resources/requests/storage", "value": "1Gi"},)
    rig.requests.clear()
    begun = rig.now
    while rig.now < begun + 3600.0:
        outcome = await rig.settle(model(size="2Gi"))
        rig.now += outcome.wait or 0.0

    assert outcome.problem == (
        "volume weights of model.storage: PersistentVolumeClaim m-weights cannot be enlarged from 1Gi to 2Gi, so set "
        "size to 1Gi, or rename the volume for a new claim. PersistentVolumeClaim 'm-weights' was accepted, but "
        "spec.resources was not stored as sent: an admission webhook or policy changes it; exempt "
        "persistentvolumeclaims from that"
    )
    assert rig.requests.count("GET") < 30
    assert await enlargements(rig) == 0
    admission.changes = ()
    assert (await rig.settle(model(size="2Gi"))).problem == ""
    assert await enlargements(rig) == 1
