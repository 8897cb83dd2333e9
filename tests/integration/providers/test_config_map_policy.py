"""With the optional policy, the KAITO provider's account can change only its own ConfigMaps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.waiting import SECONDS, phase, until_deployment

pytestmark = pytest.mark.integration

ACCOUNT = "--as=system:serviceaccount:kubefoundry-system:kubefoundry-provider-kaito"
FOLDER = str(ROOT / "manifests" / "config-map-policy")


@pytest.fixture
def policy(suite: Suite) -> Iterator[None]:
    suite.plane.kubectl("apply", "-k", FOLDER)
    yield
    suite.plane.kubectl("delete", "-k", FOLDER)


def touch(suite: Suite, namespace: str, name: str) -> str:
    """What the API server says to a patch by the provider's account that would not be stored; empty for nothing."""
    patch = ["patch", "configmap", name, "-n", namespace, "--dry-run=server", "-p", '{"data":{"a":"b"}}']
    return suite.plane.kubectl(*patch, ACCOUNT, check=False).stderr


@pytest.mark.needs_kubernetes("1.30", "ValidatingAdmissionPolicy")
async def test_config_map_policy_protects_foreign_config_maps(
    suite: Suite, api: Client, namespace: str, policy: None
) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            if "only ConfigMaps that it has made" in touch(suite, "kube-system", "kube-root-ca.crt"):
                break
            # A policy is obeyed a moment after it is stored, and nothing of its status tells when.
            await asyncio.sleep(PROBE)
    assert "only ConfigMaps that it has made" in touch(suite, namespace, "kube-root-ca.crt")

    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="kaito"), manager="test"
    )
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    made, _ = await api.list(
        CONFIG_MAPS, namespace, selector={"labelSelector": "kubefoundry.ai/provider=kaito"}
    )
    assert made
    assert touch(suite, namespace, made[0]["metadata"]["name"]) == ""
