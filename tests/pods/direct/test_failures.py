"""What a model says that does not serve: in words that tell what to do, and gone once it is corrected."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from kubefoundry_nodes.llama.hub import Hub
from kubefoundry_sdk._api.kinds import PODS, Object
from kubefoundry_sdk._cluster.client import Client
from pods.direct.models import SERVED, created, failed, pods, running, tiny, words
from support.waiting import until
from support.wishes import change_spec

pytestmark = pytest.mark.integration


async def test_unknown_engine_option_is_failed_and_repaired(api: Client, namespace: str, models: Hub) -> None:
    await created(api, tiny(namespace, models, engine={"args": {"no-such-option": "1"}}))

    await failed(api, namespace, "error: invalid argument: --no-such-option")

    await change_spec(api, namespace, "/spec/engine/args", {})
    await running(api, namespace)


async def test_missing_image_is_failed(api: Client, namespace: str, models: Hub) -> None:
    await created(api, tiny(namespace, models, image="example.com/no-such:1"))

    await failed(api, namespace, "example.com/no-such:1")


async def test_too_little_memory(api: Client, namespace: str, models: Hub) -> None:
    await created(api, tiny(namespace, models, resources={"memory": "4Mi"}))

    await failed(api, namespace, "was killed because it ran out of memory")

    await change_spec(api, namespace, "/spec/resources/memory", "1Gi")
    await running(api, namespace)


async def test_model_that_the_hub_lacks_is_failed(api: Client, namespace: str, models: Hub) -> None:
    await created(api, tiny(namespace, models, model={"id": "test/none/none.gguf", "servedName": SERVED}))

    await failed(api, namespace, "failed to load model from test/none")


async def test_server_that_dies_is_started_again(api: Client, namespace: str, models: Hub) -> None:
    await created(api, tiny(namespace, models))
    await running(api, namespace)
    [pod] = await pods(api, namespace)

    os.kill(server_of(pod), signal.SIGKILL)

    def restarted(obj: Object | None) -> bool:
        assert obj is not None
        [container] = obj["status"]["containerStatuses"]
        return container["restartCount"] == 1 and bool(container["ready"])

    await until(api, PODS, pod["metadata"]["name"], namespace, restarted)
    await running(api, namespace)
    assert "data: {" in await words(api, namespace, max_tokens=1)


def server_of(pod: Object) -> int:
    """Number on this machine of the process that serves in the pod: its host's name is the pod's."""
    name = pod["metadata"]["name"].encode()
    [found] = [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if b"llama-server" in read(process / "cmdline")
        and b"HOSTNAME=" + name in read(process / "environ").split(b"\0")
    ]
    return found


def read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
