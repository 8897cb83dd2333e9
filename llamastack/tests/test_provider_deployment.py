"""Tests the objects of services with pods of their own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from kubefoundry_llamastack import names, template_inputs
from kubefoundry_llamastack.render import children, provider_deployment, server, tool
from kubefoundry_llamastack.render.deployment import deployment
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings
from kubefoundry_sdk._api.kinds import Kind
from llamastack_providers import request

Make = Callable[..., Distribution]
Object = dict[str, Any]

FOUND: Final = PodInputs(image="example.com/stack:1", tool="chat-provider-tool-0", native_sidecars=True)
ECHO: Final[Object] = {"providerId": "echo", "image": "example.com/echo:1"}
SIDECAR: Final[Object] = {**ECHO, "service": {}}
LABELS: Final = {
    "app": "llama-stack-provider",
    "kubefoundry.ai/llsd": "chat",
    "kubefoundry.ai/llsd-provider": "guard",
}
ADDRESS: Final = "http://chat-guard-provider.team.svc"
PINNED: Final = "cb034fcf0d6b37a5b4256c3dddcb79fc"
"""Digest of the rendered Deployment of `test_rendered_pods_stay_the_same`. Another one replaces all pods of services
when the operator is upgraded."""


def guard(**service: Any) -> Object:
    return {
        "providerId": "guard",
        "image": "example.com/guard:1",
        "service": {"mode": "Deployment", **service},
    }


def objects(cr: Distribution) -> dict[Kind, Object]:
    [item] = provider_deployment.of(cr)
    return dict(provider_deployment.objects(cr, item))


@pytest.mark.accept("L2-24")
def test_own_pods_are_restricted_and_have_no_token(make: Make) -> None:
    body = objects(make(externalProviders={"safety": [guard()]}))[names.DEPLOYMENTS]

    pod = body["spec"]["template"]["spec"]
    [container] = pod.pop("containers")
    check = {"httpGet": {"path": "/healthz", "port": 8081}}
    assert body["spec"]["replicas"] == 1
    assert body["spec"]["strategy"]["type"] == "RollingUpdate"
    assert body["spec"]["template"]["metadata"] == {"labels": LABELS}
    assert pod == {
        "serviceAccountName": "chat-guard-provider",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    assert container == {
        "name": "provider-guard",
        "image": "example.com/guard:1",
        "imagePullPolicy": "IfNotPresent",
        "env": [
            {"name": "LLS_PROVIDER_ID", "value": "guard"},
            {"name": "LLS_PROVIDER_LISTEN", "value": "0.0.0.0:8080"},
            {"name": "LLS_PROVIDER_HEALTH", "value": "0.0.0.0:8081"},
        ],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "startupProbe": {**check, "periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": 31},
        "readinessProbe": {**check, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {**check, "periodSeconds": 30, "timeoutSeconds": 10, "failureThreshold": 5},
    }


def test_fields_of_service_reach_own_pods(make: Make) -> None:
    secret = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    service = guard(
        image="example.com/service:2",
        command=["/serve"],
        port=9000,
        health={"exec": ["/check"], "startSeconds": 5},
        required=False,
        env=[secret],
        scratch="1Gi",
        replicas=3,
    )

    body = objects(make(externalProviders={"safety": [service]}))[names.DEPLOYMENTS]

    pod = body["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert body["spec"]["replicas"] == 3
    assert (container["image"], container["command"]) == ("example.com/service:2", ["/serve"])
    assert container["env"][-2:] == [{"name": "LLS_PROVIDER_LISTEN", "value": "0.0.0.0:9000"}, secret]
    assert container["ports"][0]["containerPort"] == 9000
    assert container["volumeMounts"] == [{"name": "tmp-guard", "mountPath": "/tmp"}]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["volumes"] == [{"name": "tmp-guard", "emptyDir": {"sizeLimit": "1Gi"}}]
    assert container["readinessProbe"]["exec"] == {"command": ["/check"]}


def test_named_account_of_own_pods_mounts_its_token(make: Make) -> None:
    found = objects(make(externalProviders={"safety": [guard(serviceAccountName="models.reader")]}))

    pod = found[names.DEPLOYMENTS]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "models.reader"
    # The ServiceAccount itself may still forbid the token.
    assert "automountServiceAccountToken" not in pod
    assert found[names.SERVICE_ACCOUNTS]["metadata"]["name"] == "chat-guard-provider"


@pytest.mark.accept("L2-24")
def test_policy_admits_requests_of_the_server_alone(make: Make) -> None:
    rule = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}

    spec = objects(make(externalProviders={"safety": [guard(egress=[rule])]}))[names.NETWORK_POLICIES]["spec"]

    assert spec["podSelector"] == {"matchLabels": LABELS}
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [
        {
            "from": [{"podSelector": {"matchLabels": names.pod_labels("chat")}}],
            "ports": [{"protocol": "TCP", "port": "http"}],
        }
    ]
    dns, own = spec["egress"]
    assert {(item["protocol"], item["port"]) for item in dns["ports"]} == {
        *(("UDP", 53), ("TCP", 53), ("UDP", 5353), ("TCP", 5353))
    }
    assert own == rule


@pytest.mark.accept("L2-24")
def test_every_object_has_name_owner_and_labels(make: Make) -> None:
    found = objects(make(externalProviders={"safety": [guard(replicas=2)]}))

    assert [*found] == [
        *(names.SERVICE_ACCOUNTS, names.NETWORK_POLICIES, names.SERVICES, names.DEPLOYMENTS),
        names.DISRUPTION_BUDGETS,
    ]
    for kind, manifest in found.items():
        meta = manifest["metadata"]
        assert (manifest["kind"], meta["name"], meta["namespace"]) == (
            kind.kind,
            "chat-guard-provider",
            "team",
        )
        assert meta["labels"] == {**names.labels(), **LABELS}
        [owner] = meta["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == ("uid-1", True)
    assert found[names.SERVICE_ACCOUNTS]["automountServiceAccountToken"] is False
    assert found[names.SERVICES]["spec"]["selector"] == LABELS
    assert found[names.DISRUPTION_BUDGETS]["spec"]["selector"] == {"matchLabels": LABELS}


@pytest.mark.accept("L2-24")
def test_labels_of_own_pods_match_no_selector_of_the_server(make: Make) -> None:
    budget = {"podDisruptionBudget": {"maxUnavailable": 1}}
    cr = make({"replicas": 2}, externalProviders={"safety": [guard()]}, **budget)
    service, disruption = children.service(cr), children.disruption_budget(cr)
    assert service is not None
    assert disruption is not None
    body = deployment(cr, FOUND, Settings())["spec"]
    affinity = body["template"]["spec"]["affinity"]["podAntiAffinity"]
    [term] = affinity["preferredDuringSchedulingIgnoredDuringExecution"]

    selectors = [
        service["spec"]["selector"],
        body["selector"]["matchLabels"],
        disruption["spec"]["selector"]["matchLabels"],
        children.network_policy(cr, "system")["spec"]["podSelector"]["matchLabels"],
        term["podAffinityTerm"]["labelSelector"]["matchLabels"],
    ]

    assert [item for item in selectors if item.items() <= LABELS.items()] == []
    assert not LABELS.items() <= names.pod_labels("chat").items()


@pytest.mark.accept("L2-24")
@pytest.mark.parametrize("cr_length", [1, 20, 55])
@pytest.mark.parametrize("id_length", [1, 10, 45])
def test_names_are_valid_and_unique_within_63(cr_length: int, id_length: int) -> None:
    cr, provider_id = "c" * cr_length, "p" * id_length

    found = {provider_deployment.name_of(cr, provider_id[:-1] + end) for end in "ab"}

    assert len(found) == 2
    for name in found:
        assert len(name) <= 63
        assert name.strip("-") == name


def test_cut_name_has_no_double_hyphen_before_its_digest() -> None:
    name = provider_deployment.name_of("c" * 53 + "-", "p" * 10)

    assert len(name) == 62
    assert "--" not in name


def test_server_gets_address_of_own_pods(make: Make) -> None:
    cr = make(externalProviders={"inference": [SIDECAR], "safety": [guard(port=9000)]})

    pod = deployment(cr, FOUND, Settings())["spec"]["template"]["spec"]

    [container] = pod["containers"]
    variables = {item["name"]: item.get("value") for item in container["env"]}
    assert variables["KUBEFOUNDRY_PROVIDER_GUARD_URL"] == ADDRESS
    assert "provider-guard" not in [item["name"] for item in pod["initContainers"]]
    assert [item["name"] for item in pod["volumes"] if "guard" in item["name"]] == []


def test_tool_gets_description_of_own_pods(make: Make) -> None:
    cr = make(externalProviders={"inference": [SIDECAR], "safety": [guard(required=False)]})

    services = request.preflight(request.decode(tool.preflight(cr, FOUND.image))).services

    assert [*services] == ["echo", "guard"]
    described = services["guard"]
    assert (described.mode, described.transport) == ("Deployment", "TCP")
    assert (described.address, described.token_file, described.health) == (ADDRESS, "", None)
    assert described.required is False


@pytest.mark.parametrize(
    ("service", "is_replaced"),
    [
        ({"mode": "Sidecar"}, True),
        ({"required": False}, True),
        ({"image": "example.com/other:1"}, False),
        ({"command": ["x"], "args": ["y"], "env": [{"name": "A"}]}, False),
        ({"port": 9000, "transport": "TCP"}, False),
        ({"health": {"startSeconds": 600, "path": "/ok"}}, False),
        ({"resources": {"limits": {"cpu": "1"}}, "scratch": "1Gi"}, False),
        ({"replicas": 3}, False),
        ({"autoscaling": {"maxReplicas": 3}}, False),
        ({"egress": [{}]}, False),
        ({"serviceAccountName": "reader"}, False),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_change_of_own_pods_replaces_server_only_if_needed(
    make: Make, service: Object, is_replaced: bool
) -> None:
    def rendered(provider: Object) -> tuple[str, Object]:
        cr = make(externalProviders={"safety": [provider]})
        raw = {"server": {"externalProviders": {"safety": [provider]}}}
        body: Object = deployment(cr, FOUND, Settings())["spec"]["template"]
        return template_inputs.digest_inputs(cr, FOUND, "", raw), body

    before, after = rendered(guard()), rendered(guard(**service))

    assert (before[0] != after[0]) is is_replaced
    assert (before[1] != after[1]) is is_replaced


def test_rendered_pods_stay_the_same(make: Make) -> None:
    service = guard(scratch="1Gi", args=["-x"], health={"path": "/ok"})

    body = objects(make(externalProviders={"safety": [service]}))[names.DEPLOYMENTS]

    assert hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:32] == PINNED


def test_server_waits_for_preflight_of_own_pods(make: Make) -> None:
    def seconds(**service: Any) -> int:
        cr = make(externalProviders={"safety": [guard(**service)]})
        failures: int = server.probes(cr)["startupProbe"]["failureThreshold"]
        return failures * server.PERIOD

    assert seconds() - seconds(required=False) == 60
    assert seconds(health={"startSeconds": 600}) == seconds()
