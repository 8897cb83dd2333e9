"""A user's own configuration on a real server: as it is, and with an external provider in the place of one of its."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Final

import pytest
import yaml

from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from pods.images.provider import ECHO
from pods.llama_stack.distributions import entry, server, stack, until_ready
from pods.rig import end_pods

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

CONFIG = {
    "version": 2,
    "distro_name": "own",
    "image_name": "own",
    "apis": ["inference"],
    "providers": {
        "inference": [
            {
                "provider_id": "local",
                "provider_type": "remote::vllm",
                "config": {"base_url": "http://nobody.invalid/v1"},
            }
        ]
    },
}
USE: Object = {"userConfig": {"configMapName": "own"}}


CASES: Final[dict[str, Object]] = {
    "alone": {},
    "replaced": {"workers": 2, "externalProviders": {"inference": [entry("local", ECHO, prefix="hi ")]}},
}
"""With nothing but the configuration, and with an external provider.

The second has two workers: nothing in the start depends on their number, and each finds what it needs by itself. The
first has one, because without external providers a server is restarted if it has not started in 45 seconds.
"""


@pytest.fixture(scope="module")
def configured(suite: Suite, examples: None) -> Iterator[str]:
    """The namespace in which both serve. They start one after the other, each as fast as it can."""
    namespace = f"configured-{uuid.uuid4().hex[:8]}"
    suite.plane.kubectl("create", "namespace", namespace)
    asyncio.run(started(suite, namespace))
    yield namespace
    end_pods(suite, namespace)


async def started(suite: Suite, namespace: str) -> None:
    data = {"config.yaml": yaml.safe_dump(CONFIG)}
    meta = {"name": "own", "namespace": namespace}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    admin = credentials.from_kubeconfig(str(suite.plane.kubeconfig))
    async with Client(admin, user_agent="test") as api:
        await api.create(CONFIG_MAPS, body, manager="user")
        for name, more in CASES.items():
            await api.create(LLSD, stack(name, namespace, **more, **USE), manager="user")
            await until_ready(api, name, namespace)


async def test_server_starts_from_it(api: Client, configured: str) -> None:
    listed = await (await server(api, "alone", configured)).providers()

    assert {name: item["provider_type"] for name, item in listed.items()} == {"local": "remote::vllm"}


@pytest.mark.accept("FR-017", "FR-018", "US2-2")
async def test_external_provider_takes_the_place_of_one_of_its(api: Client, configured: str) -> None:
    live = await server(api, "replaced", configured)
    listed, answer = await live.providers(), await live.chat("local/echo-1", "ping")

    assert {name: item["provider_type"] for name, item in listed.items()} == {"local": "remote::acme-echo"}
    assert answer.body == "hi ping"
