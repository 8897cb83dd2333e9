"""The API server asks core about new specs, and about nothing that core would admit anyway."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from kubefoundry_core.webhook_configurations import CONDITIONS, CONFIGURATION, MUTATING, VALIDATING
from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.admission import BY_WEBHOOK
from support.deployments import CPU, model_deployment
from support.server_metrics import samples, total
from support.waiting import SECONDS, until

pytestmark = pytest.mark.integration

LABEL = {"metadata": {"labels": {"team": "a"}}}
FINALIZER = {"metadata": {"finalizers": ["example.com/kept"]}}


def spec(context_length: int, **engine: Any) -> Object:
    return {"spec": {**CPU, "engine": {**CPU["engine"], "contextLength": context_length, **engine}}}


def asked(suite: Suite) -> dict[str, float]:
    """How often the API server has asked each webhook about an update."""
    found = samples(suite.plane, "apiserver_admission_webhook_request_total")
    return {
        name: total(found, name=name, operation="UPDATE")
        for name in ("mutate.modeldeployments.kubefoundry.ai", "validate.modeldeployments.kubefoundry.ai")
    }


async def applied(api: Client, namespace: str, part: Mapping[str, Any]) -> Object:
    """The ModelDeployment `m` after that part of it was applied."""
    body = {
        "apiVersion": MODEL_DEPLOYMENTS.api_version,
        "kind": MODEL_DEPLOYMENTS.kind,
        **part,
        "metadata": {"name": "m", "namespace": namespace, **part.get("metadata", {})},
    }
    return await api.apply(MODEL_DEPLOYMENTS, body, manager=f"test-{sorted(part)[0]}")


def has_condition(condition: Object, configuration: Object | None) -> bool:
    webhooks = configuration["webhooks"] if configuration else [{}]
    return all(condition in webhook.get("matchConditions", ()) for webhook in webhooks)


async def until_in_force(fresh: Suite, api: Client, namespace: str) -> None:
    """The API server's own watch of its webhook configurations runs beside ours."""
    for kind in (MUTATING, VALIDATING):
        await until(api, kind, CONFIGURATION, None, partial(has_condition, CONDITIONS[kind.kind]))
    async with asyncio.timeout(SECONDS):
        turn = 1
        while True:
            before = asked(fresh)
            await applied(api, namespace, spec(turn))
            await applied(api, namespace, {"metadata": {"labels": {"turn": str(turn)}}})
            if asked(fresh) == {name: count + 1 for name, count in before.items()}:
                return
            turn += 1
            await asyncio.sleep(PROBE)


@pytest.mark.needs_kubernetes("1.28", "match conditions of webhooks")
async def test_admission_reviews_only_new_specs(fresh: Suite, api: Client, namespace: str) -> None:
    fresh.start("core")
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU), manager="creator")
    await until_in_force(fresh, api, namespace)
    before = asked(fresh)

    await applied(api, namespace, LABEL)
    await applied(api, namespace, FINALIZER)
    assert asked(fresh) == before

    await applied(api, namespace, spec(4096))
    assert asked(fresh) == {name: count + 1 for name, count in before.items()}

    with pytest.raises(ApiError) as refused:
        await applied(api, namespace, spec(4096, args={"ctx-size": "1"}))
    assert refused.value.message.startswith(BY_WEBHOOK)

    live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=live["metadata"]["uid"])
    before = asked(fresh)
    await applied(api, namespace, {"metadata": {"finalizers": []}})
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    assert asked(fresh) == before
