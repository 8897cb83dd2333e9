"""Tests refusals, pause, deletion, upgrades and flags."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kubefoundry_llamastack.names import (
    DEPLOYMENTS,
    LLSD,
    NETWORK_POLICIES,
    OPERATOR_CONFIG,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from kubefoundry_local.suite import NAMESPACE, Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Object
from kubefoundry_sdk._cluster.client import Client
from support.llamastack import (
    ECHO,
    condition_of,
    deployment,
    edit,
    llsd,
    reason,
    until_gone,
    until_object,
    until_status,
)

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("server", "expected", "text"),
    [
        ({"distribution": {"name": "nobody"}}, "DistributionUnknown", "Distribution name not supported"),
        ({"userConfig": {"configMapName": "gone"}}, "ConfigMapNotFound", "ConfigMap 'gone'"),
        (
            {"userConfig": {"configMapName": "x", "configMapNamespace": "other"}},
            "InvalidSpec",
            "only use ConfigMaps in their own namespace",
        ),
        (
            {"tlsConfig": {"caBundle": {"configMapName": "x", "configMapNamespace": "other"}}},
            "InvalidSpec",
            "only use ConfigMaps in their own namespace",
        ),
        ({"podDisruptionBudget": {"minAvailable": 1, "maxUnavailable": 1}}, "ApplyRejected", "was refused"),
    ],
    ids=["name", "missing ConfigMap", "foreign config", "foreign certificates", "refused"],
)
async def test_impossible_request_is_reported(
    api: Client, stack: Suite, namespace: str, server: dict[str, Any], expected: str, text: str
) -> None:
    await api.create(LLSD, llsd("wrong", namespace, **server), manager="user")

    status = await until_status(
        api, "wrong", namespace, lambda status: reason(status, "DeploymentReady") == expected
    )

    assert text in condition_of(status, "DeploymentReady")["message"]
    assert status["phase"] == "Failed"


async def test_foreign_service_is_left_alone(api: Client, stack: Suite, namespace: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "guest-service", "namespace": namespace},
        "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}},
    }
    await api.create(SERVICES, body, manager="somebody")

    await api.create(LLSD, llsd("guest", namespace), manager="user")

    status = await until_status(
        api, "guest", namespace, lambda status: reason(status, "ServiceReady") == "NameConflict"
    )
    assert "belongs to someone else" in condition_of(status, "ServiceReady")["message"]
    assert (await api.get(SERVICES, "guest-service", namespace))["spec"]["ports"][0]["port"] == 80


async def test_paused_cr_is_left_alone(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, llsd("paused", namespace), manager="user")
    await until_status(api, "paused", namespace, lambda status: reason(status, "DeploymentReady"))

    def pause(cr: Object) -> None:
        cr["metadata"]["annotations"] = {names.PAUSED_ANNOTATION: "true"}
        cr["spec"]["server"]["workers"] = 3

    await edit(api, "paused", namespace, pause)
    status = await until_status(
        api, "paused", namespace, lambda status: reason(status, "Paused") == "ReconcilePaused"
    )
    left = await api.get(DEPLOYMENTS, "paused", namespace)
    await edit(api, "paused", namespace, lambda cr: cr["metadata"].pop("annotations"))
    resumed = await until_status(api, "paused", namespace, lambda status: not reason(status, "Paused"))
    await until_object(api, DEPLOYMENTS, "paused", namespace, lambda obj: obj["metadata"]["generation"] == 2)

    assert left["metadata"]["generation"] == 1
    assert reason(status, "DeploymentReady") == reason(resumed, "DeploymentReady") == "DeploymentPending"


async def test_deletion_is_reported_and_removes_children(api: Client, stack: Suite, namespace: str) -> None:
    cr = await api.create(LLSD, llsd("leaves", namespace), manager="user")
    await deployment(api, "leaves", namespace)
    # Somebody's finalizer holds it, so that its last phase can be seen.
    await edit(api, "leaves", namespace, lambda obj: obj["metadata"].update(finalizers=["test.example/hold"]))

    await api.delete(LLSD, "leaves", namespace, uid=cr["metadata"]["uid"])
    await until_status(api, "leaves", namespace, lambda status: status.get("phase") == "Terminating")
    await edit(api, "leaves", namespace, lambda obj: obj["metadata"].pop("finalizers"))

    for kind, name in (
        (DEPLOYMENTS, "leaves"),
        (SERVICES, "leaves-service"),
        (SERVICE_ACCOUNTS, "leaves-sa"),
    ):
        await until_gone(api, kind, name, namespace)


async def test_operator_upgrade_replaces_no_pod(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, llsd("kept", namespace, externalProviders={"inference": [ECHO]}), manager="user")
    before = await deployment(api, "kept", namespace)
    record = await until_object(api, CONFIG_MAPS, "kept-applied", namespace)
    component = stack.components["llamastack"]

    component.stop()
    # Another version renders other words for the same wish.
    component.environment["KUBEFOUNDRY_PROVIDER_SIZE_LIMIT"] = "3Gi"
    component.start()
    component.wait_ready()
    await edit(api, "kept", namespace, lambda cr: cr["spec"].update(network={"exposeRoute": False}))
    generation = (await api.get(LLSD, "kept", namespace))["metadata"]["generation"]
    await until_status(
        api,
        "kept",
        namespace,
        lambda status: condition_of(status, "DeploymentReady").get("observedGeneration") == generation,
    )
    live = await api.get(DEPLOYMENTS, "kept", namespace)

    def refresh(cr: Object) -> None:
        cr["metadata"]["annotations"] = {names.REFRESH_ANNOTATION: "1"}

    await edit(api, "kept", namespace, refresh)
    renewed = await until_object(
        api, DEPLOYMENTS, "kept", namespace, lambda obj: obj["metadata"]["generation"] == 2
    )
    component.stop()
    del component.environment["KUBEFOUNDRY_PROVIDER_SIZE_LIMIT"]
    component.start()
    component.wait_ready()

    assert live["metadata"]["generation"] == before["metadata"]["generation"] == 1
    assert limit(renewed) == "3Gi"
    assert limit(before) == "2Gi"
    assert record["data"]["adopted"] == "false"


def limit(live: Object) -> str:
    volumes = {item["name"]: item for item in live["spec"]["template"]["spec"]["volumes"]}
    return str(volumes["external-providers"]["emptyDir"]["sizeLimit"])


async def test_network_policy_follows_flag(api: Client, idle: Suite) -> None:
    def flag(enabled: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": OPERATOR_CONFIG, "namespace": NAMESPACE},
            "data": {"featureFlags": f"enableNetworkPolicy: {{enabled: {enabled}"},
        }
        idle.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(body))

    idle.start("llamastack")
    flag("true}")
    await api.create(LLSD, llsd("fenced", "default"), manager="user")
    await until_object(api, NETWORK_POLICIES, "fenced-network-policy", "default")

    # a bracket is missing: what is closed stays closed
    flag("false")
    await edit(api, "fenced", "default", lambda cr: cr["spec"].update(replicas=2))
    await until_object(api, DEPLOYMENTS, "fenced", "default", lambda found: found["spec"]["replicas"] == 2)
    assert await api.get(NETWORK_POLICIES, "fenced-network-policy", "default")

    flag("false}")

    await until_gone(api, NETWORK_POLICIES, "fenced-network-policy", "default")


async def test_operator_reads_no_secret(stack: Suite) -> None:
    for verb in ("get", "list", "watch"):
        answer = stack.plane.kubectl(
            *("auth", "can-i", verb, "secrets", "--all-namespaces"),
            *("--as", f"system:serviceaccount:{NAMESPACE}:kubefoundry-llamastack"),
            check=False,
        )
        assert answer.stdout.strip() == "no"


async def test_claim_of_two_distributions_is_reported_by_both(
    api: Client, stack: Suite, namespace: str
) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "first-pvc"}}]
    mount = {"volumes": volumes, "volumeMounts": [{"name": "data", "mountPath": "/.llama"}]}
    await api.create(LLSD, llsd("first", namespace, storage={"size": "1Gi"}), manager="user")
    await until_status(api, "first", namespace, lambda status: reason(status, "StorageReady"))

    second = await api.create(LLSD, llsd("second", namespace, podOverrides=mount), manager="user")
    messages = []
    for name in ("first", "second"):
        status = await until_status(
            api, name, namespace, lambda status: reason(status, "StorageExclusive") == "ClaimShared"
        )
        messages.append(condition_of(status, "StorageExclusive")["message"])
    await api.delete(LLSD, "second", namespace, uid=second["metadata"]["uid"])
    await until_status(api, "first", namespace, lambda status: not reason(status, "StorageExclusive"))

    assert "'second'" in messages[0]
    assert "'first'" in messages[1]
