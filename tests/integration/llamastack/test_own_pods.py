"""Tests services with pods of their own at a real API server: their objects, the order of writes, and their end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from kubefoundry_llamastack import names
from kubefoundry_llamastack.names import DEPLOYMENTS, LLSD, NAMESPACES, PODS
from kubefoundry_llamastack.provider_children import KINDS
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._runtime.repairs import LIMIT
from support.llamastack import (
    ECHO,
    GUARD,
    condition_of,
    deployment,
    edit,
    llsd,
    reason,
    until_gone,
    until_object,
    until_status,
)
from support.llamastack_plane import plane_with_crds
from support.message_commands import command_in
from support.own_pods import own_pod, run, run_server, server_label, variable

pytestmark = pytest.mark.integration

Object = dict[str, Any]

OWN: Object = {"mode": "Deployment"}
SCALE: Final = "llamastack/observe/own_pods: kubectl scale -n {} deployment {} --replicas=1"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Run the operator with services of providers."""
    with plane_with_crds(tmp_path_factory.mktemp("own_pods")) as suite:
        suite.install("llamastack", environment={"KUBEFOUNDRY_PROVIDER_SERVICES": "true"})
        suite.start("llamastack")
        yield suite


def served(name: str, namespace: str, **service: Any) -> Object:
    providers = {"inference": [ECHO], "safety": [{**GUARD, "service": {**OWN, **service}}]}
    return llsd(name, namespace, externalProviders=providers)


def set_service(service: Object | None) -> Any:
    def change(cr: Object) -> None:
        [provider] = cr["spec"]["server"]["externalProviders"]["safety"]
        provider.pop("service", None)
        if service is not None:
            provider["service"] = service

    return change


async def until_served(api: Client, name: str, namespace: str) -> Object:
    """Let the service and then the server run, and return the server's Deployment."""
    await run(api, await own_pod(api, name, namespace))
    address = variable(await deployment(api, name, namespace))
    await run_server(api, name, namespace, address)
    return await until_object(
        api, DEPLOYMENTS, name, namespace, lambda obj: obj.get("status", {}).get("availableReplicas") == 1
    )


@pytest.mark.accept("L2-24")
@pytest.mark.parametrize("level", ["privileged", "restricted"])
async def test_objects_of_service_are_accepted(api: Client, stack: Suite, namespace: str, level: str) -> None:
    label = {"pod-security.kubernetes.io/enforce": level}
    await edit(api, namespace, "", lambda obj: obj["metadata"]["labels"].update(label), NAMESPACES)
    rule = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 443}]}
    full = {
        "image": "example.com/service:1",
        "scratch": "1Gi",
        "replicas": 2,
        "egress": [rule],
        "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
    }

    cr = await api.create(LLSD, served("a", namespace, **full), manager="user")
    pod = await own_pod(api, "a", namespace, "example.com/service:1")
    found = {
        kind: await until_object(api, kind, "a-guard-provider", namespace)
        for kind in KINDS
        if kind != names.AUTOSCALERS
    }

    assert pod["spec"].get("volumes") == [{"name": "tmp-guard", "emptyDir": {"sizeLimit": "1Gi"}}]
    assert pod["spec"]["automountServiceAccountToken"] is False
    for obj in found.values():
        [owner] = obj["metadata"]["ownerReferences"]
        assert owner["uid"] == cr["metadata"]["uid"]
    server_pods, _ = await api.list(PODS, namespace, selector={"labelSelector": server_label("a")})
    assert server_pods == []


async def test_token_of_named_account_is_mounted_once_it_exists(
    api: Client, stack: Suite, namespace: str
) -> None:
    await api.create(LLSD, served("a", namespace, serviceAccountName="reader"), manager="user")
    missing = await until_status(
        api,
        "a",
        namespace,
        lambda status: "reader" in condition_of(status, "ProviderDegraded").get("message", ""),
    )
    stack.plane.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    pod = await own_pod(api, "a", namespace)

    assert "service.serviceAccountName" in condition_of(missing, "ProviderDegraded")["message"]
    assert pod["spec"]["serviceAccountName"] == "reader"
    [mount] = pod["spec"]["containers"][0]["volumeMounts"]
    assert mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.mark.accept("L2-24")
async def test_longest_name_is_accepted(api: Client, stack: Suite, namespace: str) -> None:
    name, provider_id = "c" * 55, "p" * 45
    providers = {"safety": [{**GUARD, "providerId": provider_id, "service": OWN}]}

    await api.create(LLSD, llsd(name, namespace, externalProviders=providers), manager="user")

    pod = await own_pod(api, name, namespace)
    service = await until_object(api, names.SERVICES, pod["spec"]["serviceAccountName"], namespace)
    assert len(service["metadata"]["name"]) == 63


@pytest.mark.accept("L2-26")
async def test_server_is_created_once_its_service_is_available(
    api: Client, stack: Suite, namespace: str
) -> None:
    await api.create(LLSD, served("a", namespace), manager="user")
    waiting = await until_status(
        api, "a", namespace, lambda status: reason(status, "DeploymentReady") == "WaitingForProviders"
    )
    pod = await own_pod(api, "a", namespace)
    deployments, _ = await api.list(DEPLOYMENTS, namespace)
    live = await until_served(api, "a", namespace)
    served_status = await until_status(api, "a", namespace, lambda status: status["phase"] == "Ready")
    await run(api, pod, ready=False)
    degraded = await until_status(
        api, "a", namespace, lambda status: condition_of(status, "ProviderDegraded")
    )

    assert waiting["phase"] == "Pending"
    assert "guard" in condition_of(waiting, "DeploymentReady")["message"]
    assert [item["metadata"]["name"] for item in deployments] == ["a-guard-provider"]
    assert variable(live) == f"http://a-guard-provider.{namespace}.svc"
    [row] = [item for item in served_status["externalProviderStatus"] if item["providerId"] == "guard"]
    assert (row["mode"], row["container"], row["endpoint"]) == (
        *("Deployment", "a-guard-provider"),
        f"http://a-guard-provider.{namespace}.svc",
    )
    assert reason(degraded, "ProviderDegraded") == "ServiceNotReady"
    assert degraded["phase"] == "Ready"
    after = await api.get(DEPLOYMENTS, "a", namespace)
    assert after["metadata"]["generation"] == live["metadata"]["generation"] == 1


@pytest.mark.accept("L2-12")
async def test_server_does_not_wait_for_optional_service(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, served("a", namespace, required=False), manager="user")

    live = await deployment(api, "a", namespace)

    assert variable(live) == f"http://a-guard-provider.{namespace}.svc"


@pytest.mark.accept("L2-25")
async def test_scaling_and_new_image_change_no_pod_of_the_server(
    api: Client, stack: Suite, namespace: str
) -> None:
    await api.create(LLSD, served("a", namespace), manager="user")
    before = await until_served(api, "a", namespace)
    service = {**OWN, "replicas": 3, "image": "example.com/guard:2", "port": 9000, "egress": [{}]}

    await edit(api, "a", namespace, set_service(service))
    scaled = await until_object(
        api, DEPLOYMENTS, "a-guard-provider", namespace, lambda obj: obj["spec"]["replicas"] == 3
    )
    await own_pod(api, "a", namespace, "example.com/guard:2")
    await edit(api, "a", namespace, set_service({**service, "replicas": 1}))
    await until_object(
        api, DEPLOYMENTS, "a-guard-provider", namespace, lambda obj: obj["spec"]["replicas"] == 1
    )
    await until_gone(api, names.DISRUPTION_BUDGETS, "a-guard-provider", namespace)

    [item] = scaled["spec"]["template"]["spec"]["containers"]
    assert (item["image"], item["ports"][0]["containerPort"]) == ("example.com/guard:2", 9000)
    after = await api.get(DEPLOYMENTS, "a", namespace)
    assert after["metadata"]["generation"] == before["metadata"]["generation"]


@pytest.mark.accept("L2-29")
@pytest.mark.parametrize("kind", [item for item in KINDS if item != names.AUTOSCALERS], ids=str)
async def test_deleted_object_of_service_comes_back(
    api: Client, stack: Suite, namespace: str, kind: Kind
) -> None:
    await api.create(LLSD, served("a", namespace, replicas=2), manager="user")
    before = await until_object(api, kind, "a-guard-provider", namespace)

    await api.delete(kind, "a-guard-provider", namespace, uid=before["metadata"]["uid"])

    uid = before["metadata"]["uid"]
    await until_object(api, kind, "a-guard-provider", namespace, lambda obj: obj["metadata"]["uid"] != uid)


@pytest.mark.accept("L2-29")
async def test_edited_object_of_service_is_restored(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, served("a", namespace), manager="user")
    for kind in (DEPLOYMENTS, names.SERVICES, names.NETWORK_POLICIES, names.SERVICE_ACCOUNTS):
        await until_object(api, kind, "a-guard-provider", namespace)

    def open_policy(obj: Object) -> None:
        obj["spec"]["ingress"] = [{}]
        obj["metadata"]["labels"].pop("kubefoundry.ai/llsd")

    def other_image(obj: Object) -> None:
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = "example.com/evil:1"
        obj["spec"]["template"]["spec"]["automountServiceAccountToken"] = True

    await edit(api, "a-guard-provider", namespace, open_policy, names.NETWORK_POLICIES)
    policy = await until_object(
        api,
        names.NETWORK_POLICIES,
        "a-guard-provider",
        namespace,
        lambda obj: obj["spec"]["ingress"] != [{}] and "kubefoundry.ai/llsd" in obj["metadata"]["labels"],
    )
    await edit(api, "a-guard-provider", namespace, other_image, DEPLOYMENTS)
    body = await until_object(
        api,
        DEPLOYMENTS,
        "a-guard-provider",
        namespace,
        lambda obj: obj["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/guard:1",
    )

    assert policy["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"]["app"] == "llama-stack"
    assert body["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


@pytest.mark.accept("L2-29")
async def test_repair_of_own_pods_backs_off(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, served("a", namespace), manager="user")
    await deployment(api, "a-guard-provider", namespace)

    async def set_image(image: str) -> int:
        def change(obj: Object) -> None:
            obj["spec"]["template"]["spec"]["containers"][0]["image"] = image

        changed = await edit(api, "a-guard-provider", namespace, change, DEPLOYMENTS)
        return int(changed["metadata"]["generation"])

    for number in range(LIMIT):
        generation = await set_image(f"example.com/other:{number}")
        await until_object(
            api,
            DEPLOYMENTS,
            "a-guard-provider",
            namespace,
            lambda obj: image_of(obj) == "example.com/guard:1",
        )
    last = await set_image("example.com/other:last")
    await until_object(
        api,
        DEPLOYMENTS,
        "a-guard-provider",
        namespace,
        lambda obj: obj["status"]["observedGeneration"] >= last,
    )
    cr = await edit(api, "a", namespace, lambda obj: obj["spec"].update(replicas=2))
    seen = cr["metadata"]["generation"]
    await until_status(
        api, "a", namespace, lambda status: status["conditions"][0].get("observedGeneration") == seen
    )
    await edit(api, "a", namespace, set_service({**OWN, "args": ["-x"]}))
    live = await until_object(
        api, DEPLOYMENTS, "a-guard-provider", namespace, lambda obj: image_of(obj) == "example.com/guard:1"
    )

    assert last == generation + 2
    # The user's own change goes through at once, and nothing was written before.
    assert live["metadata"]["generation"] == last + 1
    assert live["spec"]["template"]["spec"]["containers"][0]["args"] == ["-x"]


def image_of(body: Object) -> str:
    return str(body["spec"]["template"]["spec"]["containers"][0]["image"])


@pytest.mark.accept("L2-29")
@pytest.mark.parametrize("kind", [names.NETWORK_POLICIES, DEPLOYMENTS], ids=str)
async def test_foreign_object_is_left_alone_and_named(
    api: Client, stack: Suite, namespace: str, kind: Kind
) -> None:
    selector = {"matchLabels": {"app": "mine"}}
    template = {
        "metadata": {"labels": {"app": "mine"}},
        "spec": {"containers": [{"name": "a", "image": "example.com/mine:1"}]},
    }
    spec: Object = (
        {"podSelector": {}} if kind != DEPLOYMENTS else {"selector": selector, "template": template}
    )
    foreign = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "a-guard-provider", "namespace": namespace},
        "spec": spec,
    }
    before = await api.create(kind, foreign, manager="user")

    await api.create(LLSD, served("a", namespace), manager="user")
    status = await until_status(
        api, "a", namespace, lambda status: reason(status, "DeploymentReady") == "NameConflict"
    )

    assert f"{kind.kind} 'a-guard-provider'" in condition_of(status, "DeploymentReady")["message"]
    after = await api.get(kind, "a-guard-provider", namespace)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"] == before["spec"]
    deployments, _ = await api.list(DEPLOYMENTS, namespace)
    # Without its policy, no pod of the service runs.
    assert [item["metadata"]["uid"] for item in deployments if kind != DEPLOYMENTS] == []


@pytest.mark.accept("L2-27")
async def test_removed_service_goes_after_the_last_pod_that_calls_it(
    api: Client, stack: Suite, namespace: str
) -> None:
    await api.create(LLSD, served("a", namespace), manager="user")
    await until_served(api, "a", namespace)

    await edit(api, "a", namespace, set_service(None))
    await until_object(api, DEPLOYMENTS, "a", namespace, lambda obj: variable(obj) is None)
    await until_status(
        api, "a", namespace, lambda status: reason(status, "DeploymentReady") == "DeploymentPending"
    )
    kept = [await api.get(kind, "a-guard-provider", namespace) for kind in (DEPLOYMENTS, names.SERVICES)]
    await run_server(api, "a", namespace, None)
    for kind in KINDS:
        await until_gone(api, kind, "a-guard-provider", namespace)

    assert [item["metadata"].get("deletionTimestamp") for item in kept] == [None, None]


@pytest.mark.accept("L2-28")
async def test_sidecar_becomes_deployment_and_back_without_gap(
    api: Client, stack: Suite, namespace: str
) -> None:
    await api.create(LLSD, served("a", namespace, mode="Sidecar"), manager="user")
    sidecar = await deployment(api, "a", namespace)
    await run_server(api, "a", namespace, variable(sidecar))

    await edit(api, "a", namespace, set_service(OWN))
    waiting = await until_status(
        api, "a", namespace, lambda status: reason(status, "DeploymentReady") == "WaitingForProviders"
    )
    held = await api.get(DEPLOYMENTS, "a", namespace)
    await run(api, await own_pod(api, "a", namespace))
    own = await until_object(
        api, DEPLOYMENTS, "a", namespace, lambda obj: str(variable(obj)).startswith("http://")
    )
    await run_server(api, "a", namespace, variable(own))
    await edit(api, "a", namespace, set_service({}))
    back = await until_object(
        api, DEPLOYMENTS, "a", namespace, lambda obj: str(variable(obj)).startswith("http+unix://")
    )
    kept = await api.get(DEPLOYMENTS, "a-guard-provider", namespace)
    await run_server(api, "a", namespace, variable(back))
    await until_gone(api, DEPLOYMENTS, "a-guard-provider", namespace)

    assert waiting["phase"] == "Ready"
    assert held["metadata"]["generation"] == sidecar["metadata"]["generation"] == 1
    assert own["metadata"]["generation"] == 2
    assert back["metadata"]["generation"] == 3
    assert "deletionTimestamp" not in kept["metadata"]


@pytest.mark.accept("L2-31")
async def test_paused_operator_writes_nothing_of_own_pods(api: Client, stack: Suite, namespace: str) -> None:
    paused = served("a", namespace)
    paused["metadata"]["annotations"] = {"kubefoundry.ai/reconcile-paused": "true"}

    await api.create(LLSD, paused, manager="user")
    await until_status(api, "a", namespace, lambda status: condition_of(status, "Paused"))

    for kind in KINDS:
        items, _ = await api.list(kind, namespace)
        assert [item for item in items if item["metadata"]["name"] == "a-guard-provider"] == []


async def test_autoscaler_decides_the_number_of_own_pods(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, served("a", namespace, replicas=2), manager="user")
    await until_object(api, DEPLOYMENTS, "a-guard-provider", namespace)
    scaling = {"maxReplicas": 5, "targetCPUUtilizationPercentage": 60}

    await edit(api, "a", namespace, set_service({**OWN, "autoscaling": scaling}))
    scaler = await until_object(api, names.AUTOSCALERS, "a-guard-provider", namespace)
    await edit(api, "a-guard-provider", namespace, lambda obj: obj["spec"].update(replicas=4), DEPLOYMENTS)
    await edit(api, "a", namespace, set_service({**OWN, "autoscaling": scaling, "args": ["-x"]}))
    changed = await until_object(
        api,
        DEPLOYMENTS,
        "a-guard-provider",
        namespace,
        lambda obj: obj["spec"]["template"]["spec"]["containers"][0].get("args") == ["-x"],
    )
    await edit(api, "a", namespace, set_service({**OWN, "replicas": 1}))
    await until_gone(api, names.AUTOSCALERS, "a-guard-provider", namespace)

    assert scaler["spec"]["scaleTargetRef"]["name"] == "a-guard-provider"
    assert changed["spec"]["replicas"] == 4


async def test_printed_remedy_starts_an_autoscaled_service_again(
    api: Client, stack: Suite, namespace: str
) -> None:
    """An autoscaler does nothing at 0: neither at the 0 of an earlier spec, nor at that of a user."""

    def has(replicas: int) -> Any:
        return lambda obj: obj["spec"].get("replicas") == replicas

    await api.create(LLSD, served("a", namespace), manager="user")
    await until_served(api, "a", namespace)
    await edit(api, "a", namespace, set_service({**OWN, "replicas": 0}))
    await until_object(api, DEPLOYMENTS, "a-guard-provider", namespace, has(0))
    await edit(api, "a", namespace, set_service({**OWN, "autoscaling": {"maxReplicas": 5}}))
    await until_object(api, DEPLOYMENTS, "a-guard-provider", namespace, has(1))
    await run(api, await own_pod(api, "a", namespace))
    stack.plane.kubectl("scale", "-n", namespace, "deployment", "a-guard-provider", "--replicas=0")
    status = await until_status(
        api,
        "a",
        namespace,
        lambda seen: "kubectl scale" in condition_of(seen, "ProviderDegraded").get("message", ""),
    )

    stack.plane.kubectl(*command_in(condition_of(status, "ProviderDegraded")["message"], SCALE)[1:])
    await run(api, await own_pod(api, "a", namespace))
    await until_status(api, "a", namespace, lambda seen: not condition_of(seen, "ProviderDegraded"))

    live = await api.get(DEPLOYMENTS, "a-guard-provider", namespace)
    assert (live["spec"]["replicas"], live["status"]["availableReplicas"]) == (1, 1)
