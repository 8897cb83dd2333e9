"""A user's own configuration on a real server: as it is, and with an external provider in the place of one of its."""

from __future__ import annotations

import pytest
import yaml

from kubefoundry_llamastack.names import LLSD
from kubefoundry_sdk.api.kinds import CONFIG_MAPS, Object
from kubefoundry_sdk.cluster.client import Client
from pods.images.provider import ECHO
from pods.llama_stack.distributions import entry, server, stack, until_ready

pytestmark = pytest.mark.integration

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


async def configure(api: Client, namespace: str) -> None:
    data = {"config.yaml": yaml.safe_dump(CONFIG)}
    meta = {"name": "own", "namespace": namespace}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    await api.create(CONFIG_MAPS, body, manager="user")


@pytest.mark.parametrize("workers", [1, 2])
async def test_the_server_starts_from_it(api: Client, examples: None, namespace: str, workers: int) -> None:
    await configure(api, namespace)
    await api.create(LLSD, stack("chat", namespace, workers=workers, **USE), manager="user")
    await until_ready(api, "chat", namespace)

    listed = await (await server(api, "chat", namespace)).providers()

    assert {name: item["provider_type"] for name, item in listed.items()} == {"local": "remote::vllm"}


@pytest.mark.accept("FR-017", "FR-018", "US2-2")
async def test_an_external_provider_takes_the_place_of_one_of_its(
    api: Client, examples: None, namespace: str
) -> None:
    await configure(api, namespace)
    providers = {"inference": [entry("local", ECHO, prefix="hi ")]}
    cr = stack("chat", namespace, workers=2, externalProviders=providers, **USE)
    await api.create(LLSD, cr, manager="user")
    await until_ready(api, "chat", namespace)

    live = await server(api, "chat", namespace)
    listed, answer = await live.providers(), await live.chat("local/echo-1", "ping")

    assert {name: item["provider_type"] for name, item in listed.items()} == {"local": "remote::acme-echo"}
    assert answer.body == "hi ping"
