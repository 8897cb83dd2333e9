"""The size of one model is limited by a ConfigMap, for all namespaces and for one (docs/policy.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import NAMESPACE as SYSTEM
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import CPU, GPU, model_deployment
from support.users import changed_refusal, refusal, until_refused

pytestmark = [pytest.mark.integration, pytest.mark.needs_kubernetes("1.30", "ValidatingAdmissionPolicy")]

DISAGGREGATED: dict[str, Any] = {
    **GPU,
    "resources": {},
    "serving": {"mode": "disaggregated"},
    "scaling": {
        "prefill": {"replicas": 1, "gpu": {"count": 2}, "memory": "8Gi"},
        "decode": {"replicas": 5, "gpu": {"count": 2}, "memory": "8Gi"},
    },
}
CASES = [
    # namespace, spec, words
    ("small", {**GPU, "resources": {"gpu": {"count": 2}}}, ""),
    ("small", {**GPU, "resources": {"gpu": {"count": 3}}}, "2 GPUs for each replica in namespace 'small'"),
    ("large", {**GPU, "resources": {"gpu": {"count": 16}}}, ""),
    ("large", {**GPU, "resources": {"gpu": {"count": 17}}}, "key 'large.gpus' of ConfigMap"),
    ("small", {**GPU, "scaling": {"replicas": 4}}, ""),
    ("small", {**GPU, "scaling": {"replicas": 5}}, "4 replicas in namespace 'small': key 'replicas' of"),
    ("small", DISAGGREGATED, "4 replicas in namespace 'small'"),
    ("small", {**CPU, "resources": {"memory": "16384Mi"}}, ""),
    (
        "small",
        {**CPU, "resources": {"memory": "17Gi"}},
        "16Gi of memory for each replica in namespace 'small'",
    ),
    ("large", {**CPU, "resources": {"memory": "17G"}}, ""),
]


@pytest.fixture(scope="module")
def limits(suite: Suite) -> None:
    plane = suite.plane
    for name in ("small", "large"):
        plane.kubectl("create", "namespace", name)
    plane.kubectl("apply", "-k", str(ROOT / "manifests" / "ceilings"))
    data = {"gpus": "2", "large.gpus": "16", "replicas": "4", "memory": "16Gi"}
    plane.kubectl(
        *("patch", "configmap", "kubefoundry-ceilings", "-n", SYSTEM, "--type=merge"),
        *("-p", json.dumps({"data": data})),
    )


@pytest.fixture
async def enforced(suite: Suite, limits: None) -> Path:
    """Kubeconfig of the administrator, whom the ceilings bind as well, once they are in force."""
    body = model_deployment("probe", "small", {**GPU, "scaling": {"replicas": 5}})
    await until_refused(suite.plane.kubeconfig, MODEL_DEPLOYMENTS, body)
    return suite.plane.kubeconfig


@pytest.mark.parametrize(("namespace", "spec", "expected"), CASES)
async def test_size_is_admitted_up_to_the_ceiling(
    enforced: Path, namespace: str, spec: dict[str, Any], expected: str
) -> None:
    words = await refusal(enforced, MODEL_DEPLOYMENTS, model_deployment("m", namespace, spec))

    assert (expected in words) if expected else words == ""
    if expected:
        assert "user 'devcluster-admin' may not ask for more than " in words
        assert words.endswith("/kubefoundry-ceilings'. Ask for less, or ask an administrator to raise it")


async def test_scale_is_refused_above_the_ceiling(suite: Suite, api: Client, enforced: Path) -> None:
    await api.create(MODEL_DEPLOYMENTS, model_deployment("scaled", "small", GPU), manager="test")
    scale = ("scale", "modeldeployments/scaled", "-n", "small")

    refused = suite.plane.kubectl(*scale, "--replicas=5", check=False)
    admitted = suite.plane.kubectl(*scale, "--replicas=4", check=False)

    assert "may not ask for more than 4 replicas in namespace 'small'" in refused.stderr
    assert admitted.returncode == 0, admitted.stderr


async def test_lower_ceiling_blocks_no_model_that_exists(suite: Suite, api: Client, enforced: Path) -> None:
    plane = suite.plane
    stored = await api.create(
        MODEL_DEPLOYMENTS,
        model_deployment("before", "large", {**GPU, "resources": {"gpu": {"count": 16}}}),
        manager="test",
    )
    lowered = ("patch", "configmap", "kubefoundry-ceilings", "-n", SYSTEM, "--type=merge")
    plane.kubectl(*lowered, "-p", '{"data": {"large.gpus": "8"}}')
    body = model_deployment("probe", "large", {**GPU, "resources": {"gpu": {"count": 9}}})
    await until_refused(enforced, MODEL_DEPLOYMENTS, body)

    def count(value: int) -> dict[str, Any]:
        return {"op": "replace", "path": "/spec/resources/gpu/count", "value": value}

    image = {"op": "add", "path": "/spec/image", "value": "example.com/engine:1"}
    edited = await changed_refusal(enforced, MODEL_DEPLOYMENTS, stored, image)
    raised = await changed_refusal(enforced, MODEL_DEPLOYMENTS, stored, count(17))
    reduced = await changed_refusal(enforced, MODEL_DEPLOYMENTS, stored, count(12))
    plane.kubectl(*lowered, "-p", '{"data": {"large.gpus": "16"}}')

    assert edited == reduced == ""
    assert "may not ask for more than 8 GPUs" in raised
