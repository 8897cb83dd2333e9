"""Every spec that provider direct takes is rendered to objects that the API server takes, unknown fields forbidden,
and that it writes back without a drift.

A namespace that enforces Pod Security `restricted` tells by warnings what of a Deployment's pods it would refuse, so
the pods are asked about themselves.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kubefoundry_direct.provider import provider
from kubefoundry_direct.settings import Settings
from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, NAMESPACES, PODS, SERVICES, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import drift, manifest
from kubefoundry_sdk.testing.fields import IMAGES
from kubefoundry_sdk.testing.generated import Spec, deployment, specs
from support.kubernetes_version import at_least
from support.pods import account
from support.sampled_cases import examples

pytestmark = pytest.mark.integration

OBJECTS = examples(150)
"""ModelDeployments that are generated; each is a Deployment, a Service and a pod."""

DIRECT = provider(Settings())
SCHEMA = Schema("apps/v1")

SERVICE_ACCOUNTS = Kind("", "v1", "serviceaccounts", "ServiceAccount", built_in=True)
CLASSES: tuple[tuple[Kind, Object], ...] = (
    (
        Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False, built_in=True),
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        },
    ),
    (
        Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False, built_in=True),
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "nvidia"},
            "handler": "nvidia",
        },
    ),
)
"""Objects that the API server looks up when a pod that names them is created."""


def overrides() -> SearchStrategy[Spec]:
    stated = st.fixed_dictionaries(
        {},
        optional={
            "rollout": st.sampled_from(["surge", "replace"]),
            "cacheClaim": st.just("weights"),
            "sharedMemory": st.sampled_from(["8Gi", "512Mi"]),
            "drainSeconds": st.sampled_from([0, 5, 600]),
            "startupSeconds": st.sampled_from([60, 7200]),
            "command": st.just(["/bin/server"]),
            "runAsUser": st.sampled_from([1000, 65532, "cluster"]),
            "imagePullSecrets": st.just(["registry"]),
        },
    )
    return st.builds(lambda chosen: {"name": "direct", "overrides": chosen}, stated)


async def test_every_spec_is_taken(cluster: ControlPlane, api: Client, namespace: str) -> None:
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    change = [{"op": "add", "path": "/metadata/labels", "value": restricted}]
    await api.json_patch(NAMESPACES, namespace, None, change, manager="test")
    await account(api, namespace)
    for kind, obj in CLASSES:
        await api.apply(kind, obj, manager="test")
    engine = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "engine", "namespace": namespace},
    }
    await api.apply(SERVICE_ACCOUNTS, engine, manager="test")
    wanted: list[Spec] = []

    @settings(
        max_examples=OBJECTS, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck)
    )
    @given(specs(modes=["aggregated"], image=IMAGES, provider=overrides()))
    def generate(spec: Spec) -> None:
        if _is_declared(spec):
            wanted.append(spec)

    generate()
    taken = [spec for spec in wanted if not check(DIRECT, deployment(spec), SCHEMA).problems]

    # a busy API server still answers each of so few within the client's deadline
    at_once = asyncio.Semaphore(8)

    async def one(spec: Spec) -> None:
        async with at_once:
            await _is_taken(api, namespace, spec)

    await asyncio.gather(*(one(spec) for spec in taken))

    # some specs state a value in the overrides and in the pod template
    assert len(taken) >= len(wanted) * 0.7, [
        check(DIRECT, deployment(spec), SCHEMA).problems for spec in wanted
    ]
    print(f"{len(taken)} ModelDeployments: {3 * len(taken)} objects taken with strict fields")


def _is_declared(spec: Spec) -> bool:
    """Check whether the API server declares each field of the pods (docs/pods.md#volumes names the missing ones)."""
    if at_least("1.31"):
        return True
    pod = spec.get("podTemplate", {}).get("spec", {})
    stored = spec["model"].get("storage", {}).get("volumes", [])
    has_images = any("image" in volume for volume in [*stored, *pod.get("volumes", [])])
    has_domains = any("minDomains" in spread for spread in pod.get("topologySpreadConstraints", []))
    return not has_images and not has_domains and "resourceClaims" not in pod


async def _is_taken(api: Client, namespace: str, spec: Spec) -> None:
    asked = deployment(spec, namespace=namespace)
    rendered = DIRECT.render(asked, SCHEMA)
    for kind, obj in ((DEPLOYMENTS, rendered.main), (SERVICES, rendered.helpers[0])):
        made = await api.apply(
            kind, manifest.with_ownership(obj, asked, "direct"), manager="direct-provider", dry_run=True
        )
        assert drift.differences({"spec": obj["spec"]}, made) == []
    template = rendered.main["spec"]["template"]
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": "m", "namespace": namespace},
        "spec": template["spec"],
    }
    await api.create(PODS, pod, manager="test", dry_run=True)
