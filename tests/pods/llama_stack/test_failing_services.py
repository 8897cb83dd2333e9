"""Required services that fail. The server waits for them in its pod, so none of these pods starts one."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from pods.images.provider import SHOUT
from pods.llama_stack.distributions import STARTED, entry, stack
from pods.llama_stack.failing import AT_ONCE, states
from pods.rig import end_pods
from support.llamastack import condition_of, reason

pytestmark = pytest.mark.integration

RESTARTS: Final = 3
"""Restarts of the service that crashes while its status is followed."""

SECRET: Final = uuid.uuid4().hex
SAYS_SECRET: Final[Mapping[str, Any]] = {
    "command": ["sh", "-c", "echo the key is $KEY | tee /dev/termination-log; exit 3"],
    "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "words", "key": "key"}}}],
}
"""A service that ends with a secret in its log and in its termination message."""

TOO_MUCH: Final = ["python3", "-c", "import time; held = bytearray(256 << 20); time.sleep(600)"]

SERVICES: Final[dict[str, tuple[Mapping[str, Any], str, str]]] = {
    "crash": (SAYS_SECRET, "ServiceCrashLoop", "ended with exit code 3"),
    "exit": ({"command": ["true"]}, "ServiceCrashLoop", "A service must run until it is stopped."),
    "memory": (
        {"command": TOO_MUCH, "resources": {"limits": {"memory": "64Mi"}}},
        "ServiceOutOfMemory",
        "Raise service.resources.limits.memory of the provider.",
    ),
    "image": ({"image": "example.com/nowhere:1"}, "ServiceImagePullFailed", "Check service.image."),
    "command": ({"command": ["/no/such/program"]}, "ServiceConfigInvalid", "Correct service.command"),
    "silent": (
        {"command": ["sleep", "infinity"], "health": {"startSeconds": 2}},
        "ServiceCrashLoop",
        "one that is not healthy 2 s after its start (service.health.startSeconds)",
    ),
}
"""Service, reason of ProviderDegraded, and a part of its message."""


@dataclass(slots=True)
class Seen:
    """What a user saw of a CR from the first failure on, each change once. status: the newest."""

    namespace: str
    shown: list[tuple[str, str, str]] = field(default_factory=list)
    status: Object = field(default_factory=dict)

    def note(self, status: Object) -> None:
        self.status = status
        now = (
            str(status.get("phase")),
            reason(status, "ProviderDegraded"),
            reason(status, "ExternalProvidersReady"),
        )
        if now[1] and now not in self.shown[-1:]:
            self.shown.append(now)

    @property
    def restarts(self) -> int:
        return int(next((row.get("restarts", 0) for row in self.status.get("externalProviderStatus", ())), 0))


@pytest.fixture(scope="module")
def failed(suite: Suite, served_images: None) -> Iterator[dict[str, Seen]]:
    """All of SERVICES, followed until each has failed, and one of them RESTARTS times more."""
    namespace = f"failing-{uuid.uuid4().hex[:8]}"
    suite.plane.kubectl("create", "namespace", namespace)
    suite.plane.kubectl(
        "create", "secret", "generic", "words", f"--from-literal=key={SECRET}", "-n", namespace
    )
    yield asyncio.run(followed(suite, namespace))
    end_pods(suite, namespace)


async def followed(suite: Suite, namespace: str) -> dict[str, Seen]:
    seen = {name: Seen(namespace) for name in SERVICES}
    admin = credentials.from_kubeconfig(str(suite.plane.kubeconfig))
    async with Client(admin, user_agent="test") as api, asyncio.timeout(STARTED):
        for name, (service, _, _) in SERVICES.items():
            served = {**entry("shout", SHOUT), "service": dict(service)}
            cr = stack(name, namespace, externalProviders={"inference": [served]}, podOverrides=AT_ONCE)
            await api.create(LLSD, cr, manager="user")
        async for obj in states(api, LLSD, namespace):
            seen[obj["metadata"]["name"]].note(obj.get("status") or {})
            if all(one.shown for one in seen.values()) and seen["crash"].restarts >= RESTARTS:
                break
    return seen


@pytest.mark.accept("L2-11", "L2-13", "L2-14")
@pytest.mark.parametrize("name", SERVICES)
def test_failed_service_is_reported_with_remedy(failed: dict[str, Seen], name: str) -> None:
    _, degraded, remedy = SERVICES[name]
    status = failed[name].status

    condition = condition_of(status, "ProviderDegraded")
    [row] = status["externalProviderStatus"]

    assert (condition["status"], condition["reason"]) == ("True", degraded)
    assert remedy in condition["message"]
    assert "\nContainer: provider-shout\n" in condition["message"]
    assert (row["mode"], row["container"], row["ready"]) == ("Sidecar", "provider-shout", False)
    assert reason(status, "ExternalProvidersReady") == "ServiceNotReady"


@pytest.mark.accept("L2-11")
def test_crash_loop_of_service_is_one_transition(failed: dict[str, Seen]) -> None:
    assert failed["crash"].restarts >= RESTARTS
    assert len(failed["crash"].shown) == 1, failed["crash"].shown


@pytest.mark.accept("L2-23")
def test_secret_of_ended_service_is_in_its_log_alone(
    failed: dict[str, Seen], suite: Suite, node: Node
) -> None:
    namespace = failed["crash"].namespace

    objects = suite.plane.kubectl("get", "llsd,deployments,events", "-n", namespace, "-o", "json").stdout

    logs = "".join(path.read_text() for path in node.logs.glob(f"{namespace}_*/provider-shout/*.log"))
    assert f"the key is {SECRET}" in logs
    assert "ServiceCrashLoop" in objects
    assert SECRET not in objects
