"""Admission of claims that is slow, refuses them or changes them: reported, and no other model waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CLAIMS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import CPU, model_deployment
from support.mutating_policies import Mutation, mutating, patch
from support.refusing_webhook import refusing
from support.roles import claims_permitted
from support.waiting import message, reason, until_deployment
from support.wishes import change_spec

pytestmark = pytest.mark.integration

CLAIM: Final[Object] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.fixture(scope="module", autouse=True)
def permitted(suite: Suite) -> Iterator[None]:
    with claims_permitted(suite.plane):
        yield


async def create(api: Client, namespace: str, name: str, template: dict[str, Any] | None = None) -> None:
    """Create a ModelDeployment of provider direct, with a claim if there is a template for it."""
    spec = CPU
    if template:
        volume = {"name": "weights", "purpose": "modelCache", "claimTemplate": template}
        spec = {**CPU, "model": {**CPU["model"], "storage": {"volumes": [volume]}}}
    body = model_deployment(name, namespace, spec, provider="direct")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")


def is_ready(obj: Object) -> bool:
    return reason(obj, "Validated") == "ValidationPassed"


async def test_slow_admission_of_claims_delays_no_status(suite: Suite, api: Client, namespace: str) -> None:
    answers = asyncio.Event()
    names = [f"slow-{number}" for number in range(12)]
    meta = {"name": "example", "namespace": namespace}
    example = {"apiVersion": "v1", "kind": CLAIMS.kind, "metadata": meta, "spec": CLAIM}

    async with refusing(
        api, CLAIMS, namespace, marker="slow-", code=0, words="", example=example, until=answers
    ):
        begun = time.monotonic()
        for name in names:
            await create(api, namespace, name, {"size": "1Gi"})
        await create(api, namespace, "plain")
        await until_deployment(api, "plain", namespace, is_ready)
        waiting = [
            await until_deployment(api, name, namespace, lambda obj: bool(reason(obj, "Ready")))
            for name in names
        ]
        taken = time.monotonic() - begun
        answers.set()
        for name in names:
            await until_deployment(api, name, namespace, is_ready)

    assert taken < 5.0
    assert {reason(obj, "Validated") for obj in waiting} == {"ClaimNotReady"}
    told = f"volume weights of model.storage: PersistentVolumeClaim {names[0]}-weights is being created"
    assert message(waiting[0], "Validated") == told


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_changes_of_a_claim_by_admission_are_reported(
    suite: Suite, api: Client, namespace: str
) -> None:
    other = patch("add", "/spec/storageClassName", '"other"', when='request.operation == "CREATE"')
    template = {"size": "1Gi", "storageClassName": "fast"}

    async with mutating(api, namespace, [Mutation("", "persistentvolumeclaims", other)]):
        await create(api, namespace, "m", template)
        refused = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "Validated") == "ClaimNotReady"
        )

    assert message(refused, "Validated") == (
        "volume weights of model.storage: PersistentVolumeClaim 'm-weights' was accepted, but spec.storageClassName "
        "was not stored as sent: an admission webhook or policy changes it; exempt persistentvolumeclaims from that "
        "and delete the claim, or name it in claimName"
    )
    volume = {"name": "weights", "purpose": "modelCache", "claimName": "m-weights"}
    await change_spec(api, namespace, "/spec/model/storage/volumes", [volume])
    await until_deployment(api, "m", namespace, is_ready)
