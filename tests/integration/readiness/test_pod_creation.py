"""A quota or policy refuses the pods: reported in the API server's words."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CORE_EVENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support import pods
from support.deployments import GPU, model_deployment
from support.kinds import RAY_SERVICES, UPSTREAM
from support.waiting import phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

STUCK = {"kaito": "unschedulable", "dynamo": "not-ready", "kuberay": "loading"}
"""What keeps the simulated upstream from ever serving."""
QUOTA = 'pods "m-0" is forbidden: exceeded quota: gpus, requested: 1, used: 8, limited: 8'


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_pods_that_are_never_created_are_explained(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    body = model_deployment(
        "m", namespace, GPU, provider=provider, labels={"kubefoundry.ai/simulator-fail": STUCK[provider]}
    )
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Deploying")
    maker = await maker_of(api, namespace, provider)

    await api.create(CORE_EVENTS, refusal(namespace, provider, maker), manager="test")

    start = f"{maker['kind']} {maker['name']} cannot create its pods: {QUOTA}; request less"
    failed = await until_deployment(
        api, "m", namespace, lambda obj: obj["status"]["message"].startswith(start)
    )
    assert (phase(failed), reason(failed, "Ready")) == ("Failed", "Failed")

    await pods.pod(
        api, namespace, f"{maker['name']}-worker-0", maker["labels"], pods.unschedulable("no node")
    )

    # a pod answers the Event, though that stays for an hour
    await until_deployment(
        api, "m", namespace, lambda obj: "cannot be scheduled: no node" in obj["status"]["message"]
    )
    await pods.pod(api, namespace, f"{maker['name']}-worker-0", maker["labels"], pods.ready())
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Deploying")


async def maker_of(api: Client, namespace: str, provider: str) -> dict[str, Any]:
    """What creates the pods of `m`, and the labels that the upstream puts on them."""
    if provider == "kaito":
        return {"kind": "StatefulSet", "name": "m", "labels": {"kaito.sh/workspace": "m"}}
    if provider == "dynamo":
        labels = {"nvidia.com/dynamo-graph-deployment-name": "m"}
        return {"kind": "ReplicaSet", "name": "m-vllmworker-5d4f", "labels": labels}

    def named(obj: Object | None) -> str:
        pending = ((obj or {}).get("status") or {}).get("pendingServiceStatus") or {}
        return str(pending.get("rayClusterName") or "")

    live = await until(api, RAY_SERVICES, "m", namespace, named)
    return {"kind": "RayCluster", "name": named(live), "labels": {"ray.io/cluster": named(live)}}


def refusal(namespace: str, provider: str, maker: dict[str, Any]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "refused", "namespace": namespace},
        "involvedObject": {"kind": maker["kind"], "name": maker["name"], "namespace": namespace},
        "reason": "FailedToCreateWorkerPod" if provider == "kuberay" else "FailedCreate",
        "type": "Warning",
        "message": QUOTA,
    }
