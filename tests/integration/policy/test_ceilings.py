"""The size of one model is limited by a ConfigMap, for all namespaces and for one (docs/policy.md)."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import NAMESPACE as SYSTEM
from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import CPU, GPU, model_deployment
from support.users import changed_refusal, refusal, until_refused
from support.waiting import SECONDS

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


def overrides(provider: str, values: dict[str, Any]) -> dict[str, Any]:
    return {**GPU, "provider": {"name": provider, "overrides": values}}


NEWLINE = "\n"
LIMITS = {"gpus": "2", "large.gpus": "16", "replicas": "4", "memory": "16Gi"}
CASES = [
    # namespace, spec, words
    ("small", {**GPU, "resources": {"gpu": {"count": 2}}}, ""),
    ("small", {**GPU, "resources": {"gpu": {"count": 3}}}, "2 GPUs for each replica in namespace 'small'"),
    ("large", {**GPU, "resources": {"gpu": {"count": 16}}}, ""),
    ("large", {**GPU, "resources": {"gpu": {"count": 17}}}, "key 'large.gpus' of ConfigMap"),
    ("small", {**GPU, "scaling": {"replicas": 4}}, ""),
    (
        "small",
        {**GPU, "scaling": {"replicas": 5}},
        "4 replicas in namespace 'small': the limit is key 'replicas' of",
    ),
    ("small", DISAGGREGATED, "4 replicas in namespace 'small'"),
    ("small", {**CPU, "resources": {"memory": "16384Mi"}}, ""),
    (
        "small",
        {**CPU, "resources": {"memory": "17Gi"}},
        "16Gi of memory for each replica in namespace 'small'",
    ),
    ("large", {**CPU, "resources": {"memory": "17G"}}, ""),
    ("small", overrides("dynamo", {"frontend": {"replicas": 4, "resources": {"memory": "16Gi"}}}), ""),
    ("small", overrides("dynamo", {"frontend": {"replicas": 5}}), "4 replicas in namespace 'small'"),
    ("small", overrides("dynamo", {"frontend": {"resources": {"memory": "17Gi"}}}), "16Gi of memory"),
    ("small", overrides("kuberay", {"head": {"resources": {"memory": "17Gi"}}}), "16Gi of memory"),
    ("small", overrides("kuberay", {"head": {"resources": {"memory": 17179869185}}}), "16Gi of memory"),
]


@pytest.fixture(scope="module")
def limits(suite: Suite) -> None:
    plane = suite.plane
    for name in ("small", "large"):
        plane.kubectl("create", "namespace", name)
    plane.kubectl("apply", "-k", str(ROOT / "manifests" / "ceilings"))
    set_limits(suite, LIMITS)


def set_limits(suite: Suite, data: Mapping[str, str | None]) -> None:
    suite.plane.kubectl(
        *("patch", "configmap", "kubefoundry-ceilings", "-n", SYSTEM, "--type=merge"),
        *("-p", json.dumps({"data": data})),
    )


async def until_answered(kubeconfig: Path, body: Object, expected: str) -> str:
    """Return the refusal once it contains the expected words, or is empty if they are."""
    async with asyncio.timeout(SECONDS):
        while True:
            words = await refusal(kubeconfig, MODEL_DEPLOYMENTS, body)
            if (expected in words) if expected else words == "":
                return words
            # A changed ConfigMap counts a moment after it is stored.
            await asyncio.sleep(PROBE)


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
    stored = await api.create(
        MODEL_DEPLOYMENTS,
        model_deployment("before", "large", {**GPU, "resources": {"gpu": {"count": 16}}}),
        manager="test",
    )
    set_limits(suite, {"large.gpus": "8"})
    body = model_deployment("probe", "large", {**GPU, "resources": {"gpu": {"count": 9}}})
    await until_refused(enforced, MODEL_DEPLOYMENTS, body)

    def count(value: int) -> dict[str, Any]:
        return {"op": "replace", "path": "/spec/resources/gpu/count", "value": value}

    image = {"op": "add", "path": "/spec/image", "value": "example.com/engine:1"}
    edited = await changed_refusal(enforced, MODEL_DEPLOYMENTS, stored, image)
    raised = await changed_refusal(enforced, MODEL_DEPLOYMENTS, stored, count(17))
    reduced = await changed_refusal(enforced, MODEL_DEPLOYMENTS, stored, count(12))
    set_limits(suite, {"large.gpus": "16"})

    assert edited == reduced == ""
    assert "may not ask for more than 8 GPUs" in raised


async def test_field_is_not_raised_to_the_old_value_of_another(
    suite: Suite, api: Client, enforced: Path
) -> None:
    set_limits(suite, {"replicas": "50"})
    body = model_deployment("roles", "small", DISAGGREGATED)
    await until_answered(enforced, body, "")
    stored = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    set_limits(suite, {"replicas": "4"})
    await until_answered(enforced, model_deployment("probe", "small", DISAGGREGATED), "4 replicas")
    raised_prefill = {"op": "replace", "path": "/spec/scaling/prefill/replicas", "value": 5}
    kept_decode = {"op": "replace", "path": "/spec/scaling/prefill/replicas", "value": 2}

    raised = await changed_refusal(enforced, MODEL_DEPLOYMENTS, stored, raised_prefill)
    kept = await changed_refusal(enforced, MODEL_DEPLOYMENTS, stored, kept_decode)

    assert "may not ask for more than 4 replicas" in raised
    assert kept == ""


async def test_config_map_without_data_limits_nothing(suite: Suite, enforced: Path) -> None:
    body = model_deployment("m", "small", {**GPU, "scaling": {"replicas": 5}})
    suite.plane.kubectl(
        *("patch", "configmap", "kubefoundry-ceilings", "-n", SYSTEM, "--type=json"),
        *("-p", '[{"op": "remove", "path": "/data"}]'),
    )

    words = await until_answered(enforced, body, "")

    set_limits(suite, LIMITS)
    await until_answered(enforced, body, "4 replicas")
    assert words == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gpus", "four"),
        ("replicas", "-1"),
        ("replicas", "9" * 30),
        ("memory", "16 GB"),
        ("gpus", "64\n"),
        ("small.gpus", ""),
    ],
)
async def test_malformed_limit_is_named(suite: Suite, enforced: Path, key: str, value: str) -> None:
    body = model_deployment("m", "small", GPU)
    set_limits(suite, {key: value})

    words = await until_answered(enforced, body, f"key '{key}' of ConfigMap ")

    suite.plane.kubectl("apply", "-k", str(ROOT / "manifests" / "ceilings"))
    set_limits(suite, {**LIMITS, "small.gpus": None})
    await until_answered(enforced, body, "")
    assert (
        f"'{SYSTEM}/kubefoundry-ceilings' is '{value.replace(NEWLINE, ' ')}', which is no limit. Ask an administrator"
        in words
    )


async def test_largest_number_limits_nothing(suite: Suite, enforced: Path) -> None:
    body = model_deployment("m", "small", {**GPU, "scaling": {"replicas": 5}})
    set_limits(suite, {"replicas": "9223372036854775807"})

    words = await until_answered(enforced, body, "")

    set_limits(suite, LIMITS)
    await until_answered(enforced, body, "4 replicas")
    assert words == ""


async def test_models_are_refused_when_the_config_map_is_missing(suite: Suite, enforced: Path) -> None:
    body = model_deployment("m", "small", GPU)
    suite.plane.kubectl("delete", "configmap", "kubefoundry-ceilings", "-n", SYSTEM)

    words = await until_answered(enforced, body, "no params found")

    suite.plane.kubectl("apply", "-k", str(ROOT / "manifests" / "ceilings"))
    set_limits(suite, LIMITS)
    await until_answered(enforced, body, "")
    assert "ValidatingAdmissionPolicy 'kubefoundry-ceilings'" in words


def test_documented_overlay_moves_the_policies(suite: Suite, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "policy.md").read_text()
    [overlay] = re.findall(r"```yaml\n(apiVersion: kustomize.*?)```", text, re.S)
    # kustomize takes no absolute paths.
    folder = os.path.relpath(ROOT / "manifests", tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(overlay.replace("../manifests", folder))

    rendered = suite.plane.kubectl("kustomize", str(tmp_path)).stdout

    objects = {(obj["kind"], obj["metadata"]["name"]): obj for obj in yaml.safe_load_all(rendered)}
    ceilings = objects["ConfigMap", "kubefoundry-ceilings"]
    assert ceilings["metadata"]["namespace"] == "models-system"
    assert ceilings["data"] == {"gpus": "8", "team-a.gpus": "16", "replicas": "32", "memory": "2Ti"}
    assert "kubefoundry-system" not in rendered
