"""A stranger at the webhook's port: core stays within its memory and keeps answering the API server."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from kubefoundry_core.admission.application import MAX_BODY, MAX_CONVERSION
from kubefoundry_core.admission.reading import MOST
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.admission import BY_WEBHOOK
from support.deployments import CPU, model_deployment
from support.memory import limit, most_held

pytestmark = pytest.mark.integration

STORM = 12


def costliest() -> bytes:
    """As many lists as are read, each around another one, and then texts of two letters."""
    lists = "[" * 100 + "]" * 100
    head = (
        '{"request":{"uid":"u","kind":{"group":"","kind":""},"object":{"metadata":{"name":"m"},"spec":{"a":['
    )
    body = head + ",".join([lists] * (MOST // 100 - 1))
    return (body + ',"ab"' * ((MAX_BODY - len(body) - 10) // 5) + "]}}}}").encode()


def costliest_conversion() -> bytes:
    """As many maps as a conversion can hold."""
    head = (
        f'{{"request":{{"uid":"u","desiredAPIVersion":"{names.API_VERSION}","objects":[{{'
        f'"apiVersion":"{names.API_VERSION}","kind":"{names.MODEL_DEPLOYMENT}","metadata":{{}},"spec":['
    )
    return (head + ",".join(["{}"] * ((MAX_CONVERSION - len(head) - 10) // 3)) + "]}]}}").encode()


async def test_core_survives_a_storm_of_the_largest_reviews(
    suite: Suite, api: Client, namespace: str
) -> None:
    core = suite.components["core"]
    assert core.process
    url = f"https://127.0.0.1:{core.environment['KUBEFOUNDRY_WEBHOOK_PORT']}"
    reviews = [
        ("/validate", b"[" * 8 * 1024 * 1024),
        ("/validate", costliest()),
        ("/convert", costliest_conversion()),
    ]

    async with aiohttp.ClientSession() as session:

        async def post(path: str, body: bytes) -> int | None:
            try:
                # Who it is that answers is of no interest here.
                async with session.post(url + path, data=body, ssl=False) as answer:
                    return answer.status
            except aiohttp.ClientError:
                # Refused before all of it was sent.
                return None

        storm = [asyncio.create_task(post(*review)) for review in reviews * (STORM // 3)]
        with pytest.raises(ApiError) as refused:
            unfit = {**CPU, "engine": {**CPU["engine"], "contextLength": 1, "args": {"ctx-size": "2"}}}
            await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, unfit), manager="creator")
        assert refused.value.message.startswith(BY_WEBHOOK)
        answers = await asyncio.gather(*storm)

    assert set(answers) <= {200, 413, 503, None}
    assert 200 in answers
    assert core.running
    assert most_held(core.process.pid) < limit("core")


@pytest.mark.parametrize("depth", [1000, 5000])
async def test_spec_that_cannot_be_read_is_not_let_in(suite: Suite, namespace: str, depth: int) -> None:
    opened, closed = '{"a":' * depth, "}" * depth
    manifest = (
        f'{{"apiVersion":"kubefoundry.ai/v1alpha1","kind":"ModelDeployment","metadata":{{"name":"deep",'
        f'"namespace":"{namespace}"}},"spec":{{"model":{{"id":"a/b"}},"engine":{{"type":"llamacpp"}},'
        f'"provider":{{"name":"nobody","overrides":{opened}0{closed}}}}}}}'
    )

    answer = suite.plane.kubectl("create", "-f", "-", input=manifest, check=False)

    assert answer.returncode != 0
    assert "deep" in answer.stderr
    assert suite.components["core"].running
