"""Ready is verified, not believed: Running only once the endpoint itself lists the model."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from kubefoundry_local.suite import Suite
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, SERVICES, Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.provider.health.verification import LAST_DELAY
from support import pods
from support.deployments import GPU, model_deployment
from support.edits import running
from support.kinds import GRAPHS
from support.suites import install_crd
from support.upstream import standin
from support.waiting import message, phase, reason, until_deployment

pytestmark = pytest.mark.integration

ENDPOINTS = Kind("", "v1", "endpoints", "Endpoints")

ASKED = 2 * LAST_DELAY
"""Bound on the next question to the endpoint, in seconds."""


class Engine:
    """An OpenAI-style server. serves: what it lists now. asked: how often."""

    def __init__(self, *serves: str) -> None:
        self.serves = serves
        self.asked = 0

    async def handle(self, request: web.Request) -> web.Response:
        self.asked += 1
        return web.json_response({"object": "list", "data": [{"id": name} for name in self.serves]})


def own_address() -> str:
    """One that is no loopback address: the API server passes nothing on to those."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_way_out:
        any_way_out.connect(("192.0.2.1", 9))
        return str(any_way_out.getsockname()[0])


@asynccontextmanager
async def listening(engine: Engine) -> AsyncIterator[int]:
    """The port where it answers."""
    app = web.Application()
    app.router.add_get("/v1/models", engine.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, own_address(), 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def unverified(obj: Object, words: str) -> bool:
    return reason(obj, "Ready") == "EndpointUnverified" and words in message(obj, "Ready")


async def test_running_needs_the_endpoint_to_list_the_served_name(
    fresh: Suite, api: Client, namespace: str
) -> None:
    install_crd(fresh, standin("dynamo").document)
    fresh.simulate("dynamo")
    # Outside of the cluster, as a process with a kubeconfig is.
    outside = {"KUBEFOUNDRY_KUBECONFIG": str(fresh.plane.kubeconfig), "KUBEFOUNDRY_VERIFY_ENDPOINT": "true"}
    fresh.install("dynamo", environment=outside)
    fresh.start("core", "dynamo")
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="dynamo"), manager="test"
    )
    path = f"GET /api/v1/namespaces/{namespace}/services/m-frontend:8000/proxy/v1/models: "
    nobody = await until_deployment(api, "m", namespace, lambda obj: unverified(obj, path))
    assert phase(nobody) == "Deploying"
    assert "endpoint" not in nobody["status"]
    assert message(nobody, "Ready").startswith(
        "Dynamo reports the model as ready, but GET /api/v1/namespaces/"
    )

    engine = Engine("other")
    async with listening(engine) as port:
        # The API server passes on to addresses of pods only.
        address = own_address()
        addressed = {**pods.ready(), "podIP": address, "podIPs": [{"ip": address}]}
        await pods.pod(api, namespace, "engine", {}, addressed)
        target = {"kind": "Pod", "name": "engine", "namespace": namespace}
        behind = {
            "addresses": [{"ip": address, "targetRef": target}],
            "ports": [{"name": "http", "port": port}],
        }
        body = {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {"name": "m-frontend", "namespace": namespace},
        }
        await api.create(ENDPOINTS, {**body, "subsets": [behind]}, manager="test")
        words = "its endpoint m-frontend:8000 lists other, not model"
        await until_deployment(api, "m", namespace, lambda obj: unverified(obj, words), seconds=ASKED)

        engine.serves = ("other", "model")

        served = await until_deployment(
            api, "m", namespace, lambda obj: phase(obj) == "Running", seconds=ASKED
        )
        assert served["status"]["endpoint"] == {"service": "m-frontend", "port": 8000}
        asked = engine.asked

        # The upstream object is looked at again and again; nothing of it has changed.
        for count in range(3):
            touch = [{"op": "add", "path": "/metadata/annotations/example.com~1touched", "value": str(count)}]
            await api.json_patch(GRAPHS, "m", namespace, touch, manager="test")
        later = model_deployment("later", namespace, GPU, provider="dynamo")
        await api.create(MODEL_DEPLOYMENTS, later, manager="test")
        await until_deployment(
            api, "later", namespace, lambda obj: reason(obj, "Ready") == "EndpointUnverified"
        )
        assert engine.asked == asked


async def test_the_annotation_asks_for_it_in_the_cluster_at_the_services_address(
    suite: Suite, api: Client, namespace: str
) -> None:
    body = model_deployment(
        "m", namespace, GPU, provider="dynamo", annotations={names.VERIFY_ENDPOINT_ANNOTATION: "true"}
    )

    await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    # No pod runs here, so nobody answers there, or somebody else does.
    await until_deployment(api, "m", namespace, lambda obj: unverified(obj, ":8000/v1/models "))
    service = await api.get(SERVICES, "m-frontend", namespace)
    words = f"GET http://{service['spec']['clusterIP']}:8000/v1/models "
    await until_deployment(api, "m", namespace, lambda obj: unverified(obj, words))

    elsewhere = {
        "type": "ExternalName",
        "externalName": "metadata.internal",
        "clusterIP": None,
        "clusterIPs": None,
    }
    patch = ["patch", "service", "m-frontend", "-n", namespace, "-p", json.dumps({"spec": elsewhere})]
    suite.plane.kubectl(*patch)

    words = f"Service {namespace}/m-frontend is of type ExternalName and is not followed"
    await until_deployment(api, "m", namespace, lambda obj: unverified(obj, words), seconds=ASKED)
    # Others are believed.
    await running(api, namespace, GPU, "dynamo", "other")
