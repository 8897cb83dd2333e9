"""Tests the checks of services of providers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import assume, given, settings
from pydantic import ValidationError

from kubefoundry_llamastack import checks, workload
from kubefoundry_llamastack.api.crd import at, definition
from kubefoundry_llamastack.reconcile import build_obstacles, read
from kubefoundry_llamastack.render import provider_deployment
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings
from kubefoundry_sdk.testing._server import schemas
from support.llamastack import llsd
from support.schema_values import values

Make = Callable[..., Distribution]
Object = dict[str, Any]

ON: Final = Settings(provider_services=True)
FOUND: Final = PodInputs(image="example.com/stack:1", tool="chat-provider-tool-0", native_sidecars=True)
FULL: Final[Object] = {
    "mode": "Sidecar",
    "image": "example.com/service:1",
    "imagePullPolicy": "Always",
    "command": ["/serve"],
    "args": ["-x"],
    "transport": "TCP",
    "port": 9000,
    "health": {"port": 9001, "path": "/ok", "startSeconds": 5},
    "required": True,
    "env": [{"name": "A", "value": "1"}],
    "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
    "scratch": "1Gi",
}


def providers(*services: Object) -> Object:
    items = [
        {"providerId": f"p{number}", "image": "i", "service": item} for number, item in enumerate(services)
    ]
    return {"externalProviders": {"inference": items}}


TCP: Final[Object] = {"transport": "TCP"}
OWN: Final[Object] = {"mode": "Deployment"}
SCALING: Final[Object] = {"maxReplicas": 3}


@pytest.mark.accept("L2-05")
@pytest.mark.parametrize(
    ("server", "phrases"),
    [
        (providers({**TCP, "port": 9000}, {**TCP, "port": 9000}), ("9000", "'p0'", "'p1'")),
        (providers({**TCP, "port": 18500}), ("18500", "requests", "health checks")),
        (providers({"health": {"port": 8321}}), ("8321", "containerSpec.port", "health.port")),
        (
            {**providers({**TCP, "port": 9000}), "containerSpec": {"port": 9000}},
            ("9000", "containerSpec.port", "service.port"),
        ),
        (providers({"port": 9000}), ("'p0'", "transport: TCP")),
        (providers({"health": {"exec": ["a"], "port": 9000}}), ("'p0'", "health.exec")),
        (providers(*({} for _ in range(17))), ("17", "16")),
        (
            {**providers({}), "containerSpec": {"name": "provider-p0"}},
            ("containerSpec.name", "'provider-p0'", "use another"),
        ),
        (providers({"env": [{"name": "LLS_PROVIDER_LISTEN"}]}), ("'p0'", "LLS_PROVIDER_LISTEN")),
        (providers({"scratch": "0Gi"}), ("'p0'", "scratch", "'0Gi'")),
        (providers({"args": ["x" * 300_000]}), ("256 KiB", "shorten")),
        (providers({"health": {"exec": ["x" * 100_000]}}), ("256 KiB", "health.exec")),
        (
            {**providers({}), "podOverrides": {"volumes": [{"name": "svc-p0", "emptyDir": {}}]}},
            ("podOverrides.volumes", "'svc-p0'"),
        ),
        (
            {**providers({}), "podOverrides": {"volumes": [{"name": "tok-p0", "emptyDir": {}}]}},
            ("podOverrides.volumes", "'tok-p0'"),
        ),
        (
            {**providers({}), "podOverrides": {"volumeMounts": [{"mountPath": "/run//lls-provider/p0"}]}},
            ("podOverrides.volumeMounts", "/run//lls-provider/p0"),
        ),
        (
            {**providers({}), "podOverrides": {"volumeMounts": [{"mountPath": "/run/lls-provider-tokens"}]}},
            ("podOverrides.volumeMounts", "/run/lls-provider-tokens"),
        ),
        (providers({**OWN, "transport": "UnixSocket"}), ("'p0'", "mode: Deployment", "transport: TCP")),
        (providers({**OWN, "port": 8081}), ("8081", "requests", "health checks")),
        (providers({**OWN, "port": 9000, "health": {"port": 9000}}), ("9000", "service.health.port")),
        (providers({**OWN, "replicas": 2, "autoscaling": SCALING}), ("'p0'", "replicas and autoscaling")),
        (providers({**OWN, "health": {"exec": ["a"], "path": "/"}}), ("'p0'", "health.exec")),
        (providers({**OWN, "env": [{"name": "LLS_PROVIDER_ID"}]}), ("'p0'", "LLS_PROVIDER_ID")),
        (providers({**OWN, "args": ["x" * 300_000]}), ("the service of provider 'p0'", "256 KiB")),
        (providers({**OWN, "egress": [{"x": "x" * 300_000}]}), ("'p0'", "256 KiB", "egress")),
        (providers({"replicas": 2}), ("'p0'", "replicas", "mode: Deployment")),
        (providers({"autoscaling": SCALING}), ("'p0'", "autoscaling", "mode: Deployment")),
        (providers({"egress": []}), ("'p0'", "egress", "mode: Deployment")),
        (providers({"serviceAccountName": "a"}), ("'p0'", "serviceAccountName", "mode: Deployment")),
        (providers(*({} for _ in range(9)), *(OWN for _ in range(8))), ("17", "16")),
    ],
    ids=[
        *("port twice", "own ports", "default of the server", "port of the server", "port of a socket"),
        *("exec and port", "17 services", "container", "variable", "scratch", "size", "size of a check"),
        *("volume", "volume of the token", "mount", "mount of the token"),
        *("socket of other pods", "port of health", "same ports", "replicas and scaling", "exec and path"),
        *("variable of own pods", "size of own pods", "size of the policy"),
        *("replicas of a sidecar", "scaling of a sidecar", "policy of a sidecar", "account of a sidecar"),
        "17 of both modes",
    ],
)
def test_invalid_service_is_refused_with_remedy(make: Make, server: Object, phrases: tuple[str, ...]) -> None:
    text = checks.refusal(make(**server), ON) or ""

    assert [phrase for phrase in phrases if phrase not in text] == []
    assert [item.reason for item in build_obstacles(make(**server), text)] == ["InvalidSpec"]


@pytest.mark.accept("L2-05")
@pytest.mark.parametrize(
    "server",
    [
        providers(*({} for _ in range(16))),
        providers(*({**TCP} for _ in range(16))),
        providers(FULL),
        providers({"health": {"exec": ["/check"]}}, {"health": {"exec": ["/check"]}}),
        {
            "externalProviders": {"inference": [{"providerId": "a", "image": "i"}]},
            "podOverrides": {"volumeMounts": [{"mountPath": "/run/lls-provider/p0"}]},
        },
    ],
    ids=["16 services", "16 services over TCP", "all fields", "without ports", "no service"],
)
def test_valid_service_is_not_refused(make: Make, server: Object) -> None:
    assert checks.refusal(make(**server), ON) is None


@pytest.mark.accept("L2-37")
def test_service_is_refused_by_name_while_gate_is_off(make: Make) -> None:
    text = checks.refusal(make(**providers({})), Settings()) or ""

    assert "'p0'" in text
    assert "--provider-services" in text


SCHEMA: Final = at(
    definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
    "spec.server.externalProviders.inference[].service",
)


@pytest.mark.accept("L2-39")
@settings(max_examples=300, deadline=None, derandomize=True)
@given(values(SCHEMA, odd=True))
def test_any_stored_service_is_refused_or_rendered(service: Any) -> None:
    assume(not schemas.problems(service, SCHEMA))

    size = largest_object(service)

    assert size < 1_000_000


@pytest.mark.accept("L2-39")
@pytest.mark.parametrize("text", ["x", "🦙", "\u202e", "\\", "\x01"], ids=ascii)
@pytest.mark.parametrize("count", [1, 16])
@pytest.mark.parametrize("field", ["args", "exec"])
def test_longest_services_fit_into_one_object(text: str, count: int, field: str) -> None:
    def service(word: str) -> Object:
        return {"args": [word]} if field == "args" else {"health": {"exec": [word]}}

    lengths = [max(2**power, count) for power in range(20)]
    sizes = [largest_object(*[service(text * (length // count))] * count) for length in lengths]

    assert sizes[0] > 0
    assert sizes[-1] == 0
    assert max(sizes) < 1_000_000


def largest_object(*services: Any) -> int:
    """Return the size of the largest object that the operator writes, 0 if it refuses the services."""
    live = llsd("chat", "team", **providers(*services))
    live["metadata"] |= {"uid": "u", "generation": 1}
    try:
        cr = read(live)
    except ValidationError:
        return 0
    if checks.refusal(cr, ON) is not None:
        return 0
    decision = workload.decide(cr, FOUND, ON, "inputs", None, None)
    own_pods = [provider_deployment.objects(cr, item) for item in provider_deployment.of(cr)]
    own_objects = (manifest for manifests in own_pods for _, manifest in manifests)
    written = (decision.body, workload.record_config_map(cr, decision.record), *own_objects)
    return max(len(json.dumps(item)) for item in written)
