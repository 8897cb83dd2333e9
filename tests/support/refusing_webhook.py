"""An admission webhook of the test's own that refuses what carries a marker."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_simulators.certificate import self_signed, tls
from support.waiting import SECONDS

HOST: Final = "127.0.0.1"
WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)


@asynccontextmanager
async def refusing(
    api: Client, kind: Kind, namespace: str, *, marker: str, code: int, words: str, example: Object
) -> AsyncIterator[None]:
    """Refuses writes of the kind and of its status in the namespace whose JSON holds `marker`, inside the block.

    code, words: the webhook's answer. example: an object of the kind by which is found out when the API server
    asks the webhook; it is never stored.
    """
    asked = asyncio.Event()

    async def review(request: web.Request) -> web.Response:
        asked.set()
        body: dict[str, Any] = await request.json()
        answer: dict[str, Any] = {"uid": body["request"]["uid"], "allowed": True}
        if marker in json.dumps(body["request"]["object"]):
            answer |= {"allowed": False, "status": {"code": code, "message": words}}
        return web.json_response({**body, "request": None, "response": answer})

    certificate, key = self_signed(HOST)
    app = web.Application()
    app.router.add_post("/", review)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0, ssl_context=tls(certificate, key)).start()
    url = f"https://{HOST}:{runner.addresses[0][1]}/"
    made = await api.create(WEBHOOKS, _configuration(kind, namespace, url, certificate), manager="test")
    try:
        async with asyncio.timeout(SECONDS):
            while not asked.is_set():
                await api.create(kind, example, manager="test", dry_run=True)
        yield
    finally:
        await api.delete(WEBHOOKS, made["metadata"]["name"], None, uid=made["metadata"]["uid"])
        await runner.cleanup()


def _configuration(kind: Kind, namespace: str, url: str, certificate: bytes) -> Object:
    return {
        "apiVersion": WEBHOOKS.api_version,
        "kind": WEBHOOKS.kind,
        "metadata": {"name": f"test-{uuid.uuid4().hex[:8]}"},
        "webhooks": [
            {
                "name": f"test.{kind.crd}",
                "clientConfig": {"url": url, "caBundle": base64.b64encode(certificate).decode()},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": [kind.group],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [kind.plural, f"{kind.plural}/status"],
                    }
                ],
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
