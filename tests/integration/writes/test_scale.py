"""The scale subresource selects exactly the pods that are replicas, which an autoscaler needs."""

from __future__ import annotations

import json

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import PODS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU
from support.edits import running
from support.pods import pod, ready
from support.waiting import until_deployment

pytestmark = pytest.mark.integration

DYNAMO = {
    "replica": {"nvidia.com/dynamo-component-type": "worker"},
    "other": {"nvidia.com/dynamo-component-type": "frontend"},
}
KUBERAY = {"replica": {"ray.io/node-type": "worker"}, "other": {"ray.io/node-type": "head"}}


@pytest.mark.parametrize(("provider", "roles"), [("dynamo", DYNAMO), ("kuberay", KUBERAY)])
async def test_scale_selects_the_replicas(
    suite: Suite, api: Client, namespace: str, provider: str, roles: dict[str, dict[str, str]]
) -> None:
    await running(api, namespace, GPU, provider)
    seen = await until_deployment(
        api, "m", namespace, lambda obj: bool((obj.get("status") or {}).get("selector"))
    )
    stated = dict(term.split("=") for term in seen["status"]["selector"].split(","))
    for name, labels in roles.items():
        await pod(api, namespace, name, {**stated, **labels}, ready())
    scale = suite.plane.kubectl("get", "md", "m", "-n", namespace, "--subresource=scale", "-o", "json")

    selected, _ = await api.list(
        PODS, namespace, selector={"labelSelector": json.loads(scale.stdout)["status"]["selector"]}
    )

    assert [one["metadata"]["name"] for one in selected] == ["replica"]
