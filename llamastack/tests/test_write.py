"""Tests writes of children, against a server instead of the API server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_llamastack import names
from kubefoundry_llamastack.memory import Memory
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.write import Writer
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Object
from kubefoundry_sdk._runtime.refusals import Refused
from kubefoundry_sdk._runtime.store import Store
from support.wire import Asked, ok, wire

WANTED: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "chat-config", "namespace": "team", "labels": names.labels()},
}


@pytest.mark.parametrize("labels", [{}, {names.MANAGED_BY_LABEL: "somebody"}])
async def test_put_refuses_object_once_when_label_is_dropped(
    make: Callable[..., Distribution], labels: dict[str, str]
) -> None:
    def answer(request: Asked) -> web.Response:
        return ok({**request.body, "metadata": {**request.body["metadata"], "uid": "u", "labels": labels}})

    memory: defaultdict[tuple[str, str], Memory] = defaultdict(Memory)
    store = Store()
    messages = []
    async with wire(answer) as client:
        writer = Writer(client.client, memory.__getitem__)
        for now in (0.0, 10.0, 200.0):
            with pytest.raises(Refused) as refused:
                await writer.apply(CONFIG_MAPS, store, WANTED, make(), now)
            messages.append(str(refused.value))

    assert len(client.asked) == 1
    assert set(messages) == {
        "ConfigMap 'chat-config' was accepted, but label app.kubernetes.io/managed-by was not stored as sent: an "
        "admission webhook or policy changes it; exempt objects with the label llamastack.io/watch from that"
    }
    assert store.get(("team", "chat-config")) is None


async def test_put_stores_object_with_label(make: Callable[..., Distribution]) -> None:
    def answer(request: Asked) -> web.Response:
        stored: Object = {
            **request.body,
            "metadata": {**request.body["metadata"], "uid": "u", "resourceVersion": "7"},
        }
        return ok(stored)

    memory: defaultdict[tuple[str, str], Memory] = defaultdict(Memory)
    store = Store()
    async with wire(answer) as client:
        assert await Writer(client.client, memory.__getitem__).apply(CONFIG_MAPS, store, WANTED, make(), 0.0)

    assert store.get(("team", "chat-config")) is not None


async def test_forbidden_takeover_is_a_refusal(make: Callable[..., Distribution]) -> None:
    """An ApiError would be retried without a condition that names the missing permission."""
    live: Object = {
        **WANTED,
        "metadata": {**WANTED["metadata"], "uid": "u", "resourceVersion": "7", "managedFields": []},
    }
    words = "it is forbidden: cannot set an ownerRef on a resource you can't delete"

    def answer(request: Asked) -> web.Response:
        if request.method == "GET":
            return ok(live)
        return web.json_response({"kind": "Status", "code": 403, "message": words}, status=403)

    memory: defaultdict[tuple[str, str], Memory] = defaultdict(Memory)
    async with wire(answer) as client:
        writer = Writer(client.client, memory.__getitem__)
        with pytest.raises(Refused, match="can't delete; ask an administrator"):
            await writer.take_over(CONFIG_MAPS, Store(), live, make(), [{"op": "test"}])
