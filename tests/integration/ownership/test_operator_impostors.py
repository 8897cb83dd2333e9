"""A tenant's objects with the names of an upstream operator's are not trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, LEASES, PROVIDER_CONFIGS, Kind
from kubefoundry_sdk._cluster.client import Client
from support.restarts import stopped
from support.waiting import until

pytestmark = pytest.mark.integration

DEPLOYMENT, LEASE = "kuberay-operator", "ray-operator-leader"
UP = "UpstreamOperatorUp"


@pytest.fixture
def believed(suite: Suite, namespace: str) -> str:
    """A namespace that an administrator has labelled; the test's other one is a tenant's."""
    name = f"{namespace}-system"
    suite.plane.kubectl("create", "namespace", name)
    suite.plane.kubectl("label", "namespace", name, f"{names.OPERATORS_LABEL}=true")
    return name


@pytest.fixture
def forgotten(suite: Suite, namespace: str, believed: str) -> Iterator[None]:
    """KAITO's Deployments, and what the provider has read of them, when the test is over."""
    yield
    for where in (namespace, believed):
        suite.plane.kubectl("delete", "deployment", "kaito-workspace", "-n", where)
    with stopped(suite.components["kaito"]):
        pass


async def deploy(api: Client, namespace: str, name: str, *, available: int, **container: Any) -> None:
    """As a tenant can: status included, by pods that start or do not."""
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace}}
    labels = {"app": name}
    pod = {"containers": [{"name": "manager", "image": "example.com/operator:latest", **container}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    await api.apply(DEPLOYMENTS, {**head, "spec": spec}, manager="test")
    status = {"replicas": 1, "readyReplicas": available, "availableReplicas": available}
    await api.apply_status(DEPLOYMENTS, {**head, "status": status}, manager="test")


async def elect(api: Client, namespace: str, holder: str) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600}
    metadata = {"name": LEASE, "namespace": namespace}
    head = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata}
    await api.apply(LEASES, {**head, "spec": spec}, manager="test")


async def remove(api: Client, kind: Kind, name: str, namespace: str) -> None:
    live = await api.get(kind, name, namespace)
    await api.delete(kind, name, namespace, uid=live["metadata"]["uid"])


async def until_said(api: Client, provider: str, type_: str, holds: Callable[[dict[str, Any]], Any]) -> None:
    """Until that condition of the registration is so; {} stands for none."""
    await until(
        api,
        PROVIDER_CONFIGS,
        provider,
        None,
        lambda obj: obj and holds(find((obj.get("status") or {}).get("conditions"), type_) or {}),
    )


async def test_tenant_deployment_is_no_sign_of_the_operator(
    suite: Suite, api: Client, namespace: str, believed: str
) -> None:
    # The tenant's come first: what is said of the others afterwards has seen them.
    await deploy(api, namespace, DEPLOYMENT, available=1)
    await deploy(api, believed, DEPLOYMENT, available=0)
    await until_said(
        api, "kuberay", UP, lambda reported: f"{believed}/{DEPLOYMENT}" in reported.get("message", "")
    )

    await deploy(api, namespace, DEPLOYMENT, available=0)
    await deploy(api, believed, DEPLOYMENT, available=1)
    await until_said(api, "kuberay", UP, lambda reported: reported.get("status") == "True")

    await remove(api, DEPLOYMENTS, DEPLOYMENT, believed)
    await until_said(api, "kuberay", UP, lambda reported: not reported)


async def test_tenants_lease_tells_nothing(suite: Suite, api: Client, namespace: str, believed: str) -> None:
    await elect(api, namespace, "somebody")
    await elect(api, believed, "")
    await until_said(
        api, "kuberay", UP, lambda reported: f"{believed}/{LEASE}" in reported.get("message", "")
    )

    await remove(api, LEASES, LEASE, believed)
    await until_said(api, "kuberay", UP, lambda reported: not reported)


async def test_namespace_whose_label_goes_is_not_believed_any_more(
    suite: Suite, api: Client, believed: str
) -> None:
    await deploy(api, believed, DEPLOYMENT, available=1)
    await until_said(api, "kuberay", UP, lambda reported: reported.get("status") == "True")

    suite.plane.kubectl("label", "namespace", believed, f"{names.OPERATORS_LABEL}-")

    await until_said(api, "kuberay", UP, lambda reported: not reported)


async def test_tenants_deployment_tells_no_setting(
    suite: Suite, api: Client, namespace: str, believed: str, forgotten: None
) -> None:
    def ends(words: str) -> Callable[[dict[str, Any]], bool]:
        return lambda reported: reported.get("message", "").endswith(words)

    # Of two that count, only what both say would hold: a tenant's, which says something else, would leave nothing.
    await deploy(api, namespace, "kaito-workspace", available=1, args=["--node-provisioner=karpenter"])
    await deploy(api, believed, "kaito-workspace", available=1, args=["--node-provisioner=byo"])
    await until_said(
        api,
        "kaito",
        "SettingsDiscovered",
        ends(f"provisioning=byo: read from Deployment {believed}/kaito-workspace"),
    )


def test_tenant_cannot_label_its_namespace(suite: Suite, namespace: str) -> None:
    for role in ("edit", "admin"):
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": role, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": f"{namespace}-{role}"}],
        }
        suite.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(binding))

        labelling = ["label", "namespace", namespace, f"{names.OPERATORS_LABEL}=true"]
        done = suite.plane.kubectl(*labelling, f"--as={namespace}-{role}", check=False)

        assert "forbidden" in done.stderr.lower()
