"""ModelDeployments for servers: an engine behind a Service, and the status that its provider would write."""

from __future__ import annotations

from typing import Final

import yaml

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from pods.images import model_server
from pods.llama_stack.distributions import STARTED, behind, until_answers

MODEL: Final = "tiny-8b"
"""As the engine serves it."""


async def start(api: Client, suite: Suite, namespace: str, ports: dict[str, int]) -> None:
    """Start engines behind Services of these names and ports, and wait until they answer."""
    engines = [
        item for name, port in ports.items() for item in model_server.objects(name, namespace, MODEL, port)
    ]
    suite.plane.kubectl("create", "-f", "-", input=yaml.safe_dump_all(engines))
    wait = ("wait", "pod", *ports, "-n", namespace, "--for=condition=Ready", f"--timeout={STARTED:.0f}s")
    suite.plane.kubectl(*wait)
    for name in ports:
        await until_answers(await behind(api, name, namespace), "/v1/models")


async def report(api: Client, namespace: str, ready: bool, service: str, port: int) -> None:
    """Write the status of ModelDeployment `llama`, as its provider does."""
    condition = {
        "type": "Ready",
        "status": str(ready),
        "reason": "DeploymentReady" if ready else "Progressing",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    endpoint = {"endpoint": {"service": service, "port": port}} if ready else {}
    status = {"phase": "Running" if ready else "Deploying", "conditions": [condition], **endpoint}
    body = {
        "apiVersion": MODEL_DEPLOYMENTS.api_version,
        "kind": MODEL_DEPLOYMENTS.kind,
        "metadata": {"name": "llama", "namespace": namespace},
        "status": status,
    }
    await api.apply_status(MODEL_DEPLOYMENTS, body, manager="test-provider")
