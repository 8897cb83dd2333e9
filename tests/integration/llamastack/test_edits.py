"""Tests edits that the existing operator got wrong, and removed fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_llamastack.names import (
    AUTOSCALERS,
    CLAIMS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    INGRESSES,
    LLSD,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.llamastack import (
    ECHO,
    deployment,
    edit,
    llsd,
    new_pod,
    reason,
    until_gone,
    until_object,
    until_status,
)

pytestmark = pytest.mark.integration

Server = dict[str, Any]

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def container(live: Object) -> Object:
    [server] = live["spec"]["template"]["spec"]["containers"]
    return dict(server)


def variables(live: Object) -> dict[str, str]:
    return {item["name"]: item.get("value", "") for item in container(live)["env"]}


async def after(api: Client, name: str, namespace: str, change: Callable[[Server], None]) -> Object:
    """Return the Deployment once it is of the edited CR."""
    before = await deployment(api, name, namespace)
    await edit(api, name, namespace, lambda cr: change(cr["spec"]["server"]))
    return await until_object(
        api,
        DEPLOYMENTS,
        name,
        namespace,
        lambda obj: obj["metadata"]["generation"] > before["metadata"]["generation"],
    )


async def test_removed_fields_are_pruned(api: Client, stack: Suite, namespace: str) -> None:
    fields = {
        "containerSpec": {
            "name": "one",
            "port": 8321,
            "command": ["/run"],
            "args": ["--fast"],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "resources": {"limits": {"memory": "2Gi"}},
        },
        "podOverrides": {
            "terminationGracePeriodSeconds": 75,
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        },
    }
    await make(api, llsd("less", namespace, **fields))
    await deployment(api, "less", namespace)

    def less(server: Server) -> None:
        server["containerSpec"] = {"name": "two", "port": 9000, "env": [{"name": "B", "value": "2"}]}
        del server["podOverrides"]

    live = await after(api, "less", namespace, less)
    service = await until_object(
        api, SERVICES, "less-service", namespace, lambda obj: obj["spec"]["ports"][0]["port"] == 9000
    )

    server_container = container(live)
    assert server_container["name"] == "two"
    assert not {"command", "args"} & server_container.keys()
    assert "limits" not in server_container["resources"]
    assert "A" not in variables(live)
    assert [item["mountPath"] for item in server_container["volumeMounts"]] == ["/.llama"]
    assert [item["name"] for item in live["spec"]["template"]["spec"]["volumes"]] == ["lls-storage"]
    assert live["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 30
    assert len(service["spec"]["ports"]) == 1
    assert [item["controller"] for item in live["metadata"]["ownerReferences"]] == [True]


async def test_claim_stays_when_storage_is_removed(api: Client, stack: Suite, namespace: str) -> None:
    await make(api, llsd("stored", namespace))
    await deployment(api, "stored", namespace)

    stored = await after(api, "stored", namespace, lambda server: server.update(storage={"size": "1Gi"}))
    moved = await after(
        api, "stored", namespace, lambda server: server.update(storage={"size": "1Gi", "mountPath": "/data"})
    )
    emptied = await after(api, "stored", namespace, lambda server: server.pop("storage"))

    assert stored["spec"]["strategy"] == {"type": "Recreate"}
    assert [item["mountPath"] for item in container(moved)["volumeMounts"]] == ["/data"]
    assert emptied["spec"]["strategy"]["type"] == "RollingUpdate"
    assert emptied["spec"]["template"]["spec"]["volumes"] == [{"name": "lls-storage", "emptyDir": {}}]
    assert (await api.get(CLAIMS, "stored-pvc", namespace))["spec"]["resources"]["requests"] == {
        "storage": "1Gi"
    }


async def test_claim_failure_stops_no_other_child(api: Client, stack: Suite, namespace: str) -> None:
    await make(api, llsd("grow", namespace, storage={"size": "1Gi"}))
    await deployment(api, "grow", namespace)

    await edit(api, "grow", namespace, lambda cr: cr["spec"]["server"].update(storage={"size": "2Gi"}))

    status = await until_status(
        api, "grow", namespace, lambda status: reason(status, "StorageReady") == "StorageFailed"
    )
    assert reason(status, "DeploymentReady") == "DeploymentPending"


async def test_disruption_budget_changes_and_is_deleted(api: Client, stack: Suite, namespace: str) -> None:
    await make(api, llsd("budget", namespace, podDisruptionBudget={"minAvailable": 1}))
    await until_object(api, DISRUPTION_BUDGETS, "budget-pdb", namespace)

    await edit(
        api,
        "budget",
        namespace,
        lambda cr: cr["spec"]["server"].update(podDisruptionBudget={"maxUnavailable": 1}),
    )
    changed = await until_object(
        api, DISRUPTION_BUDGETS, "budget-pdb", namespace, lambda obj: "maxUnavailable" in obj["spec"]
    )
    await edit(api, "budget", namespace, lambda cr: cr["spec"]["server"].pop("podDisruptionBudget"))
    await until_gone(api, DISRUPTION_BUDGETS, "budget-pdb", namespace)

    assert "minAvailable" not in changed["spec"]


@pytest.mark.parametrize("server", [{}, {"storage": {"size": "1Gi"}}], ids=["rolling", "storage"])
async def test_scaling_up_keeps_running_pods(
    api: Client, stack: Suite, namespace: str, server: Server
) -> None:
    await make(api, llsd("grows", namespace, **server))
    first = await new_pod(api, "grows", namespace, "example.com/stack:1")

    await edit(api, "grows", namespace, lambda cr: cr["spec"].update(replicas=2))
    live = await until_object(
        api, DEPLOYMENTS, "grows", namespace, lambda obj: (obj.get("status") or {}).get("replicas") == 2
    )

    pods, _ = await api.list(PODS, namespace)
    assert first["metadata"]["name"] in {pod["metadata"]["name"] for pod in pods}
    assert live["status"]["updatedReplicas"] == 2
    assert len({pod["metadata"]["labels"]["pod-template-hash"] for pod in pods}) == 1


async def test_autoscaled_replicas_are_kept(api: Client, stack: Suite, namespace: str) -> None:
    await make(api, llsd("scaled", namespace, {"replicas": 2}))
    await deployment(api, "scaled", namespace)
    scaling = {"minReplicas": 2, "maxReplicas": 5, "targetCPUUtilizationPercentage": 70}

    await edit(api, "scaled", namespace, lambda cr: cr["spec"]["server"].update(autoscaling=scaling))
    await until_object(api, AUTOSCALERS, "scaled-hpa", namespace)
    live = await deployment(api, "scaled", namespace)
    stack.plane.kubectl("scale", "deployment/scaled", "-n", namespace, "--replicas=4")
    changed = await after(api, "scaled", namespace, lambda server: server.update(workers=2))
    await edit(api, "scaled", namespace, lambda cr: cr["spec"]["server"].pop("autoscaling"))
    await until_gone(api, AUTOSCALERS, "scaled-hpa", namespace)
    back = await until_object(api, DEPLOYMENTS, "scaled", namespace, lambda obj: obj["spec"]["replicas"] == 2)

    assert live["spec"]["replicas"] == 2
    assert changed["spec"]["replicas"] == 4
    assert back["spec"]["replicas"] == 2


async def test_autoscaler_with_two_metrics_is_written_once(api: Client, stack: Suite, namespace: str) -> None:
    """Older API servers return the metrics in another order."""
    log = AuditLog(stack)
    targets = {"targetCPUUtilizationPercentage": 70, "targetMemoryUtilizationPercentage": 80}
    await make(api, llsd("twice", namespace, autoscaling={"maxReplicas": 5, **targets}))
    await until_object(api, AUTOSCALERS, "twice-hpa", namespace)

    await after(api, "twice", namespace, lambda server: server.update(workers=2))
    await after(api, "twice", namespace, lambda server: server.update(workers=3))

    assert len(log.writes("llamastack", namespace, "horizontalpodautoscalers")) == 1


async def test_ingress_is_deleted_when_route_is_disabled(api: Client, stack: Suite, namespace: str) -> None:
    await make(api, llsd("routed", namespace, {"network": {"exposeRoute": True}}))
    await until_object(api, INGRESSES, "routed-ingress", namespace)

    await edit(api, "routed", namespace, lambda cr: cr["spec"].update(network={"exposeRoute": False}))

    await until_gone(api, INGRESSES, "routed-ingress", namespace)


async def test_removed_providers_leave_nothing(api: Client, stack: Suite, namespace: str) -> None:
    await make(api, llsd("extended", namespace, externalProviders={"inference": [ECHO]}))
    with_them = await deployment(api, "extended", namespace)

    live = await after(api, "extended", namespace, lambda server: server.pop("externalProviders"))

    assert "initContainers" in with_them["spec"]["template"]["spec"]
    pod = live["spec"]["template"]["spec"]
    assert "initContainers" not in pod
    assert [item["name"] for item in pod["volumes"]] == ["lls-storage"]
    assert container(live)["startupProbe"]["failureThreshold"] == 3
    status = await until_status(
        api, "extended", namespace, lambda status: "externalProviderStatus" not in status
    )
    assert reason(status, "ExternalProvidersReady") == ""


async def test_operator_variable_can_be_replaced(api: Client, stack: Suite, namespace: str) -> None:
    own = {"port": 8321, "env": [{"name": "HF_HOME", "value": "/cache"}]}
    await make(api, llsd("own", namespace, containerSpec=own))
    await deployment(api, "own", namespace)

    live = await after(
        api, "own", namespace, lambda server: server["containerSpec"]["env"][0].update(value="/other")
    )

    assert variables(live)["HF_HOME"] == "/other"


async def test_service_account_keeps_user_additions(api: Client, stack: Suite, namespace: str) -> None:
    await make(api, llsd("pulls", namespace))
    await deployment(api, "pulls", namespace)

    def add(account: Object) -> None:
        account["imagePullSecrets"] = [{"name": "registry"}]

    await edit(api, "pulls-sa", namespace, add, SERVICE_ACCOUNTS)
    await after(api, "pulls", namespace, lambda server: server.update(workers=2))

    live = await api.get(SERVICE_ACCOUNTS, "pulls-sa", namespace)
    assert live["imagePullSecrets"] == [{"name": "registry"}]


async def test_config_map_content_rolls_out_once_labels_never(
    api: Client, stack: Suite, namespace: str
) -> None:
    await api.create(
        CONFIG_MAPS, config_map("conf", namespace, {"config.yaml": "version: 2"}), manager="user"
    )
    await api.create(CONFIG_MAPS, config_map("cas", namespace, {"ca-bundle.crt": PEM}), manager="user")
    bundle = {"caBundle": {"configMapName": "cas"}}
    await make(api, llsd("conf", namespace, userConfig={"configMapName": "conf"}, tlsConfig=bundle))
    first = await deployment(api, "conf", namespace)

    def label(obj: Object) -> None:
        obj["metadata"]["labels"] = {"a": "b"}

    await edit(api, "conf", namespace, label, CONFIG_MAPS)
    await edit(api, "conf", namespace, lambda obj: obj["data"].update(other="2"), CONFIG_MAPS)
    second = await until_object(
        api, DEPLOYMENTS, "conf", namespace, lambda obj: obj["metadata"]["generation"] == 2
    )
    await edit(
        api, "cas", namespace, lambda obj: obj["data"].update({"ca-bundle.crt": PEM + PEM}), CONFIG_MAPS
    )
    third = await until_object(
        api, DEPLOYMENTS, "conf", namespace, lambda obj: obj["metadata"]["generation"] == 3
    )
    await edit(api, "conf", namespace, lambda cr: cr["spec"]["server"].pop("tlsConfig"))
    await until_gone(api, CONFIG_MAPS, "conf-ca-bundle", namespace)
    plain = await after(api, "conf", namespace, lambda server: server.pop("userConfig"))

    marks = [live["spec"]["template"]["metadata"]["annotations"] for live in (first, second, third)]
    assert marks[0]["configmap.hash/user-config"] != marks[1]["configmap.hash/user-config"]
    assert marks[1]["configmap.hash/ca-bundle"] != marks[2]["configmap.hash/ca-bundle"]
    assert "annotations" not in plain["spec"]["template"]["metadata"]
    assert "command" not in container(plain)
    assert plain["metadata"]["ownerReferences"] == first["metadata"]["ownerReferences"]


def config_map(name: str, namespace: str, data: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


async def make(api: Client, cr: Object) -> Object:
    return await api.create(LLSD, cr, manager="user")
