"""Core asks the API server whether it stores image volumes before a provider may use one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kubefoundry_core.image_volumes import AGAIN, ImageVolumes, image_volumes
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.client import Client, over
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.testing._server.transport import CREDENTIALS, MemoryTransport
from support.claims import Rig, model

IMAGE = {"name": "weights", "image": {"reference": "example.com/llama:1"}, "purpose": "modelCache"}
UNKNOWN = ApiError(
    400,
    "BadRequest",
    'PodTemplate in version "v1" cannot be handled as a PodTemplate: strict decoding error: unknown field '
    '"template.spec.volumes[0].image"',
)
PROBLEM = (
    "volume weights is an image, and the API server of this cluster stores no image volumes: use a claim, or ask an "
    "administrator for Kubernetes 1.35 or newer (from 1.31 on, the feature gate ImageVolume)"
)


def with_image(*, is_validated: bool = False) -> Object:
    live = model(is_validated=is_validated)
    live["spec"]["model"]["storage"]["volumes"] = [IMAGE]
    return live


STORED: Object = {
    "apiVersion": "v1",
    "kind": "PodTemplate",
    "metadata": {"name": "a", "namespace": "n"},
    "template": {"spec": {"volumes": [{"name": "weights", "image": {"reference": "i"}}]}},
}
DROPPED = {**STORED, "template": {"spec": {"containers": [{"name": "engine"}]}}}


class Answering(MemoryTransport):
    """A transport that answers each request in the same way, and counts them."""

    answer: Object | ApiError | Unreachable = STORED
    requests = 0
    released: asyncio.Event | None = None

    async def exchange(self, method: str, *args: Any, **options: Any) -> bytearray:
        self.requests += 1
        if self.released:
            await self.released.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return bytearray(json.dumps(self.answer).encode())


class Cluster:
    """An API server whose answer a test sets, and core's check of image volumes."""

    def __init__(self) -> None:
        self.now = 0.0
        self.transport = Answering(Rig().server, user_agent="t")
        client = over(Client(CREDENTIALS, user_agent="t"), self.transport)
        self.checked = ImageVolumes(client, "n", lambda: self.now)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (STORED, ""),
        (DROPPED, PROBLEM),
        (UNKNOWN, PROBLEM),
        (ApiError(403, "Forbidden", "podtemplates is forbidden: User"), ""),
        (ApiError(400, "BadRequest", 'admission webhook "w" denied the request: no'), ""),
        (ApiError(422, "Invalid", "denied request: no image volumes here"), ""),
        (ApiError(503, "ServiceUnavailable", "try again"), ""),
        (Unreachable("no answer"), ""),
    ],
)
async def test_image_is_refused_only_if_the_answer_shows_it(
    cluster: Cluster, answer: Object | ApiError | Unreachable, problem: str
) -> None:
    cluster.transport.answer = answer

    outcome = await cluster.checked.check(with_image())

    assert outcome.problem == problem


async def test_api_server_is_asked_again_after_a_refusal(cluster: Cluster) -> None:
    cluster.transport.answer = UNKNOWN
    first = await cluster.checked.check(with_image())
    await cluster.checked.check(with_image())
    asked = cluster.transport.requests
    cluster.transport.answer = STORED
    cluster.now += AGAIN

    last = await cluster.checked.check(with_image())
    cluster.now += 10 * AGAIN
    await cluster.checked.check(with_image())

    assert (first.wait, asked) == (AGAIN, 1)
    assert (last.problem, last.wait) == ("", None)
    assert cluster.transport.requests == 2


@pytest.mark.parametrize("live", [model(), with_image(is_validated=True)])
async def test_model_without_a_new_image_causes_no_request(cluster: Cluster, live: Object) -> None:
    cluster.transport.answer = UNKNOWN

    outcome = await cluster.checked.check(live)

    assert (outcome.problem, cluster.transport.requests) == ("", 0)


@pytest.mark.parametrize(
    ("spec", "volumes"),
    [
        ({"podTemplate": {"spec": {"volumes": [{"name": "a", "image": {"reference": "i"}}]}}}, ["a"]),
        ({"model": {"storage": {"volumes": [IMAGE, {"name": "b", "claimName": "c"}]}}}, ["weights"]),
        ({"model": {"storage": {"volumes": [None, {"image": 1}, {"image": {}}]}}}, ["None"]),
        ({"model": "m", "podTemplate": [1]}, []),
        (None, []),
    ],
)
def test_images_are_found_in_any_spec(spec: Any, volumes: list[str]) -> None:
    assert image_volumes(spec) == volumes


async def test_models_wait_for_the_answer_that_another_requested(cluster: Cluster) -> None:
    cluster.transport.answer = DROPPED
    cluster.transport.released = asyncio.Event()
    first, second = (asyncio.create_task(cluster.checked.check(with_image())) for _ in range(2))
    await asyncio.wait([first, second], timeout=0.05)

    cluster.transport.released.set()

    assert [(await first).problem, (await second).problem] == [PROBLEM, PROBLEM]
    assert cluster.transport.requests == 1
