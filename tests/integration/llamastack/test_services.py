"""Tests services of providers at a real API server: validation, pods, and the flags that switch them on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kubefoundry_llamastack.api.spec import ExternalProviders
from kubefoundry_llamastack.names import AUTOSCALERS, DEPLOYMENTS, LLSD, NAMESPACES
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.llamastack import (
    ECHO,
    GUARD,
    condition_of,
    deployment,
    edit,
    llsd,
    new_pod,
    reason,
    until_object,
    until_status,
)
from support.llamastack_plane import plane_with_crds

pytestmark = pytest.mark.integration

Object = dict[str, Any]

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
GATE = "KUBEFOUNDRY_PROVIDER_SERVICES"
NATIVE = "KUBEFOUNDRY_NATIVE_SIDECARS"
SECTIONS = [str(field.alias) for field in ExternalProviders.model_fields.values()]
DEFAULTS: Object = {"mode": "Sidecar", "imagePullPolicy": "IfNotPresent", "required": True}
FULL: Object = {
    **DEFAULTS,
    "image": "example.com/service:1",
    "command": ["/serve"],
    "args": ["-x"],
    "transport": "TCP",
    "port": 9000,
    "health": {"port": 9001, "path": "/ok", "startSeconds": 5},
    "required": False,
    "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
    "resources": {"limits": {"memory": "1Gi"}},
    "scratch": "1Gi",
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Run the operator with services of providers."""
    with plane_with_crds(tmp_path_factory.mktemp("services")) as suite:
        suite.install("llamastack", environment={GATE: "true"})
        suite.start("llamastack")
        yield suite


def served(name: str, namespace: str, service: Object, **server: Any) -> Object:
    providers = {"inference": [ECHO], "safety": [{**GUARD, "service": service}]}
    return llsd(name, namespace, externalProviders=providers, **server)


@pytest.mark.accept("L2-02")
@pytest.mark.parametrize("section", SECTIONS)
async def test_schema_stores_service_with_defaults(
    api: Client, stack: Suite, namespace: str, section: str
) -> None:
    providers = {
        section: [
            {**GUARD, "service": {"health": {}, "unknown": 1}},
            {**ECHO, "service": FULL},
        ]
    }

    cr = llsd("a", namespace, externalProviders=providers)

    stack.plane.kubectl("create", "--validate=ignore", "-f", "-", input=yaml.safe_dump(cr))

    stored = (await api.get(LLSD, "a", namespace))["spec"]["server"]["externalProviders"][section]
    plain, full = (item["service"] for item in stored)
    assert plain == {**DEFAULTS, "health": {"startSeconds": 60}}
    assert full == FULL


@pytest.mark.accept("L2-02", "L2-05")
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"mode": "Job"}, "mode"),
        ({"mode": "Deployment", "replicas": 101}, "replicas"),
        ({"mode": "Deployment", "replicas": -1}, "replicas"),
        ({"mode": "Deployment", "autoscaling": {}}, "autoscaling.maxReplicas"),
        ({"mode": "Deployment", "egress": [{}] * 17}, "egress"),
        ({"mode": "Deployment", "serviceAccountName": ""}, "serviceAccountName"),
        ({"mode": "Deployment", "serviceAccountName": "a_b"}, "serviceAccountName"),
        ({"image": ""}, "image"),
        ({"imagePullPolicy": "Sometimes"}, "imagePullPolicy"),
        ({"command": ["x"] * 65}, "command"),
        ({"args": ["x"] * 65}, "args"),
        ({"transport": "UDP"}, "transport"),
        ({"transport": "TCP", "port": 1023}, "port"),
        ({"transport": "TCP", "port": 65536}, "port"),
        ({"health": {"port": 80}}, "health.port"),
        ({"health": {"path": "healthz"}}, "health.path"),
        ({"health": {"path": "/gesund-ü"}}, "health.path"),
        ({"health": {"path": "/a b"}}, "health.path"),
        ({"health": {"path": "/a\n"}}, "health.path"),
        ({"health": {"path": "/" + "x" * 253}}, "health.path"),
        ({"health": {"exec": []}}, "health.exec"),
        ({"health": {"exec": ["x"] * 17}}, "health.exec"),
        ({"health": {"exec": [""]}}, "health.exec"),
        ({"health": {"startSeconds": 0}}, "health.startSeconds"),
        ({"health": {"startSeconds": 3601}}, "health.startSeconds"),
        ({"required": "yes"}, "required"),
        ({"env": [{"value": "x"}]}, "env[0].name"),
        ({"resources": {"limits": {"memory": "lots"}}}, "resources.limits.memory"),
        ({"scratch": "-1Gi"}, "scratch"),
    ],
    ids=str,
)
async def test_schema_refuses_invalid_service(
    api: Client, stack: Suite, namespace: str, wrong: Object, field: str
) -> None:
    with pytest.raises(ApiError, match="422") as refused:
        await api.create(LLSD, served("bad", namespace, wrong), manager="user")

    assert field in str(refused.value)


@pytest.mark.accept("L2-05")
async def test_service_with_used_port_is_refused_before_any_write(
    api: Client, stack: Suite, namespace: str
) -> None:
    service = {"transport": "TCP", "port": 8321}

    await api.create(LLSD, served("clash", namespace, service), manager="user")

    status = await until_status(api, "clash", namespace, lambda status: reason(status, "DeploymentReady"))
    condition = condition_of(status, "DeploymentReady")
    assert (status["phase"], condition["reason"]) == ("Failed", "InvalidSpec")
    assert "8321" in condition["message"]
    deployments, _ = await api.list(DEPLOYMENTS, namespace)
    assert deployments == []


@pytest.mark.accept("L2-22")
@pytest.mark.parametrize("level", ["baseline", "restricted"])
@pytest.mark.parametrize("required", [True, False])
async def test_pod_with_services_is_admitted(
    api: Client, stack: Suite, namespace: str, level: str, required: bool
) -> None:
    label = {"pod-security.kubernetes.io/enforce": level}
    await edit(api, namespace, "", lambda obj: obj["metadata"]["labels"].update(label), NAMESPACES)
    full = {**FULL, "required": required}

    await api.create(LLSD, served("admitted", namespace, full), manager="user")
    pod = await new_pod(api, "admitted", namespace, "example.com/service:1")

    containers = {item["name"]: item for item in (*pod["spec"]["initContainers"], *pod["spec"]["containers"])}
    assert containers["provider-guard"]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        "readOnlyRootFilesystem": True,
    }
    paths = {item["mountPath"] for item in containers["provider-guard"]["volumeMounts"]}
    assert paths == {"/run/lls-provider", "/run/lls-provider-tokens/guard", "/tmp", TOKEN}


async def test_service_has_no_token_of_the_servers_account(api: Client, stack: Suite, namespace: str) -> None:
    account = {"podOverrides": {"serviceAccountName": "default"}}

    await api.create(LLSD, served("token", namespace, {}, **account), manager="user")
    pod = await new_pod(api, "token", namespace, "example.com/guard:1")

    containers = [*pod["spec"]["initContainers"], *pod["spec"]["containers"]]
    volumes = {
        item["name"]: mount["name"]
        for item in containers
        for mount in item["volumeMounts"]
        if mount["mountPath"] == TOKEN
    }
    assert volumes["provider-guard"] == "svc-guard"
    assert volumes["llama-stack"].startswith("kube-api-access-")


@pytest.mark.accept("L2-32")
async def test_autoscaler_is_accepted_with_service(api: Client, stack: Suite, namespace: str) -> None:
    autoscaling = {"maxReplicas": 3, "targetCPUUtilizationPercentage": 60}

    await api.create(LLSD, served("scaled", namespace, {}, autoscaling=autoscaling), manager="user")

    scaler = await until_object(api, AUTOSCALERS, "scaled-hpa", namespace)
    [metric] = scaler["spec"]["metrics"]
    template = (await deployment(api, "scaled", namespace))["spec"]["template"]["spec"]
    containers = [*template["initContainers"], *template["containers"]]
    assert metric["type"] in ("ContainerResource", "Resource")
    assert metric.get("containerResource", {}).get("container", "llama-stack") == "llama-stack"
    [sidecar] = [item for item in containers if item["name"] == "provider-guard"]
    assert sidecar["resources"]["requests"] == {"cpu": "100m", "memory": "128Mi"}


@pytest.mark.accept("L2-37")
async def test_flags_replace_no_pod_and_gate_refuses_edits_by_name(
    api: Client, stack: Suite, namespace: str
) -> None:
    await api.create(LLSD, served("kept", namespace, {}), manager="user")
    before = await deployment(api, "kept", namespace)
    component = stack.components["llamastack"]

    async def restarted(**environment: str) -> Object:
        component.stop()
        component.environment.update(environment)
        component.start()
        component.wait_ready()

        def relabelled(cr: Object) -> None:
            cr["spec"]["network"] = {"exposeRoute": not cr["spec"].get("network", {}).get("exposeRoute")}

        generation = (await edit(api, "kept", namespace, relabelled))["metadata"]["generation"]
        return await until_status(
            api,
            "kept",
            namespace,
            lambda status: condition_of(status, "DeploymentReady").get("observedGeneration") == generation,
        )

    try:
        flipped = await restarted(**{NATIVE: "false"})
        after_flip = await api.get(DEPLOYMENTS, "kept", namespace)
        refused = await restarted(**{GATE: "false"})
        after_gate = await api.get(DEPLOYMENTS, "kept", namespace)
    finally:
        del component.environment[NATIVE]
        accepted = await restarted(**{GATE: "true"})

    assert reason(flipped, "DeploymentReady") == "DeploymentPending"
    message = condition_of(refused, "DeploymentReady")["message"]
    assert reason(refused, "DeploymentReady") == "InvalidSpec"
    assert "'guard'" in message
    assert "--provider-services" in message
    assert reason(accepted, "DeploymentReady") == "DeploymentPending"
    for live in (after_flip, after_gate):
        assert live["metadata"]["generation"] == before["metadata"]["generation"] == 1
