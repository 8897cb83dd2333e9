"""A server that accepts connections and never answers, in a real pod: what its user reads, and who calls it."""

from __future__ import annotations

import pytest

from kubefoundry_llamastack.names import LLSD
from kubefoundry_sdk._api.kinds import SERVICES, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from pods.llama_stack.distributions import PORT, STARTED, stack
from support.llamastack import condition_of, reason, until_status
from support.waiting import until

pytestmark = pytest.mark.integration

ENDPOINT_SLICES = Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")

HANGS = f"""
import socket
server, kept = socket.create_server(("", {PORT})), []
while True:
    client, _ = server.accept()
    if not kept and b"/v1/health" in client.recv(65536):
        client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{{}}")
        client.close()
    else:
        kept.append(client)
"""
"""Answers probes until it is asked for anything else; from then on nothing at all."""


@pytest.mark.accept("HP-9")
async def test_hanging_server_gets_no_requests_and_is_reported(
    api: Client, examples: None, namespace: str
) -> None:
    cr = stack("chat", namespace)
    cr["spec"]["server"]["containerSpec"]["command"] = ["python3", "-c", HANGS]
    await api.create(LLSD, cr, manager="user")

    await until_status(api, "chat", namespace, unanswered, seconds=STARTED)
    left_out = await until_status(
        api,
        "chat",
        namespace,
        lambda status: status.get("phase") == "Initializing" and silent(status),
        seconds=STARTED,
    )

    assert left_out["availableReplicas"] == 0
    assert reason(left_out, "DeploymentReady") == "PodsUnavailable"
    service = await api.get(SERVICES, "chat-service", namespace)
    await until(api, ENDPOINT_SLICES, await slice_of(api, service, namespace), namespace, receives_nothing)


def unanswered(status: Object) -> bool:
    words = "accepts requests but does not answer within 5 s"
    found = condition_of(status, "HealthCheck")
    return found.get("reason") == "HealthCheckFailed" and words in found["message"]


def silent(status: Object) -> bool:
    return (
        f"nothing answers GET /v1/health on port {PORT}" in condition_of(status, "DeploymentReady")["message"]
    )


async def slice_of(api: Client, service: Object, namespace: str) -> str:
    """Name of the EndpointSlice of a Service that has one."""
    selector = {"labelSelector": f"kubernetes.io/service-name={service['metadata']['name']}"}
    [found], _ = await api.list(ENDPOINT_SLICES, namespace, selector=selector)
    return str(found["metadata"]["name"])


def receives_nothing(found: Object | None) -> bool:
    ends = (found or {}).get("endpoints") or ()
    return not any(one["conditions"]["ready"] for one in ends)
