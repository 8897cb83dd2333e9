"""With verification, a model is Running only once its endpoint lists the model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, SERVICES, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._provider.health.verification import DELAYS
from support.deployments import GPU, model_deployment
from support.edits import running
from support.engine import Engine, led_to, listening
from support.kinds import GRAPHS
from support.restarts import restarted
from support.suites import running_suite
from support.waiting import message, phase, reason, serves, until_deployment

pytestmark = pytest.mark.integration

ASKED = 2 * DELAYS.last
"""Bound on the next question to the endpoint, in seconds."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core and the Dynamo provider."""
    with running_suite(tmp_path_factory.mktemp("verified"), "dynamo") as made:
        made.start("core", "dynamo")
        yield made


@contextmanager
def outside(suite: Suite, verify: str) -> Iterator[None]:
    """In the block the provider has that flag and is outside of the cluster, as a process with a kubeconfig is."""
    kubeconfig = {"KUBEFOUNDRY_KUBECONFIG": str(suite.plane.kubeconfig)}
    with restarted(suite.components["dynamo"], {**kubeconfig, "KUBEFOUNDRY_VERIFY_ENDPOINT": verify}):
        yield


def unverified(obj: Object, words: str) -> bool:
    return reason(obj, "Ready") == "EndpointUnverified" and words in message(obj, "Ready")


async def test_running_needs_the_endpoint_to_list_the_served_name(
    suite: Suite, api: Client, namespace: str
) -> None:
    with outside(suite, "true"):
        await api.create(
            MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="dynamo"), manager="test"
        )
        path = f"GET /api/v1/namespaces/{namespace}/services/m-frontend:8000/proxy/v1/models answers 404 Not Found; "
        nobody = await until_deployment(api, "m", namespace, lambda obj: unverified(obj, path))
        assert phase(nobody) == "Deploying"
        assert "endpoint" not in nobody["status"]
        assert message(nobody, "Ready").startswith(
            "the Dynamo operator reports the model as ready, but GET /api/v1/namespaces/"
        )

        engine = Engine("other")
        async with listening(engine) as port:
            await led_to(api, namespace, "m-frontend", port)
            words = "its endpoint m-frontend:8000 lists other, not model"
            await until_deployment(api, "m", namespace, lambda obj: unverified(obj, words), seconds=ASKED)

            engine.serves = ("other", "model")

            served = await until_deployment(api, "m", namespace, serves, seconds=ASKED)
            assert served["status"]["endpoint"] == {"service": "m-frontend", "port": 8000, "model": "model"}
            asked = engine.asked

            # The upstream object is looked at again and again; nothing of it has changed.
            for count in range(3):
                touch = [
                    {"op": "add", "path": "/metadata/annotations/example.com~1touched", "value": str(count)}
                ]
                await api.json_patch(GRAPHS, "m", namespace, touch, manager="test")
            later = model_deployment("later", namespace, GPU, provider="dynamo")
            await api.create(MODEL_DEPLOYMENTS, later, manager="test")
            await until_deployment(
                api, "later", namespace, lambda obj: reason(obj, "Ready") == "EndpointUnverified"
            )
            assert engine.asked == asked


async def test_server_with_api_key_runs_with_a_note(suite: Suite, api: Client, namespace: str) -> None:
    engine = Engine("model")
    engine.lists = 401
    async with listening(engine) as port:
        with outside(suite, "true"):
            body = model_deployment("m", namespace, GPU, provider="dynamo")
            await api.create(MODEL_DEPLOYMENTS, body, manager="test")
            await until_deployment(api, "m", namespace, lambda obj: unverified(obj, "GET /api/v1"))

            await led_to(api, namespace, "m-frontend", port)

            served = await until_deployment(api, "m", namespace, serves, seconds=ASKED)
    assert served["status"]["endpoint"] == {"service": "m-frontend", "port": 8000, "model": "model"}
    assert "answers 401 Unauthorized without an API key: a server answers" in message(served, "Ready")


async def test_running_needs_an_answer_where_the_flag_says_so(
    suite: Suite, api: Client, namespace: str
) -> None:
    engine = Engine("model")
    async with listening(engine) as port:
        with outside(suite, "answer"):
            body = model_deployment("m", namespace, GPU, provider="dynamo")
            await api.create(MODEL_DEPLOYMENTS, body, manager="test")
            await until_deployment(api, "m", namespace, lambda obj: unverified(obj, "GET /api/v1"))

            await led_to(api, namespace, "m-frontend", port)

            words = "a request for one token to model is answered by /v1/completions 503"
            listed = await until_deployment(
                api, "m", namespace, lambda obj: unverified(obj, words), seconds=ASKED
            )
            assert phase(listed) == "Deploying"
            assert "endpoint" not in listed["status"]

            engine.answers = 200

            served = await until_deployment(api, "m", namespace, serves, seconds=ASKED)
            assert served["status"]["endpoint"] == {"service": "m-frontend", "port": 8000, "model": "model"}
            assert {"model": "model", "prompt": "1", "max_tokens": 1} in engine.completed


async def test_verification_annotation_asks_the_service_address(
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
