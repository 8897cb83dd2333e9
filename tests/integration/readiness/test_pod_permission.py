"""A provider that may not watch pods works without them, says so once, and uses them once it may."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_local.suite import PROBE, Suite, manifest
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support import pods
from support.deployments import GPU, model_deployment
from support.roles import until_allowed
from support.suites import install_crd
from support.upstream import standin
from support.waiting import SECONDS, phase, until_deployment

pytestmark = pytest.mark.integration

LEFT_OUT = "objects are skipped, watching them is forbidden"


async def test_pods_are_left_out_until_they_may_be_watched(fresh: Suite, api: Client, namespace: str) -> None:
    install_crd(fresh, standin("dynamo").document)
    fresh.simulate("dynamo")
    fresh.start("core")
    fresh.install("dynamo")
    whole = next(document for document in manifest("dynamo") if document["kind"] == "ClusterRole")
    apply(fresh, {**whole, "rules": [rule for rule in whole["rules"] if "pods" not in rule["resources"]]})
    until_allowed(fresh.plane, "provider-dynamo", "watch", "pods", allowed=False)
    fresh.start("dynamo")
    body = model_deployment(
        "m", namespace, GPU, provider="dynamo", labels={"kubefoundry.ai/simulator-fail": "not-ready"}
    )
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Deploying")
    labels = {"nvidia.com/dynamo-graph-deployment-name": "m"}
    await pods.pod(api, namespace, "m-0", labels, pods.waiting("ErrImagePull", "no such tag"))
    log = fresh.components["dynamo"].log
    async with asyncio.timeout(SECONDS):
        while True:
            if lines_about_pods(log):
                break
            await asyncio.sleep(PROBE)

    apply(fresh, whole)

    # Looked for at once, and after 1, 5 and 60 s: how many of these it was too late for is the machine's business.
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Failed", seconds=300)
    assert len(lines_about_pods(log)) == 1


def lines_about_pods(log: Path) -> list[str]:
    lines = log.read_text().splitlines()
    return [line for line in lines if LEFT_OUT in line and '"resource": "pods"' in line]


def apply(suite: Suite, document: dict[str, Any]) -> None:
    suite.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(document))
