"""An admission webhook of the test that refuses objects with a marker."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.client import Client
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
    api: Client,
    kind: Kind,
    namespace: str,
    *,
    marker: str,
    code: int,
    words: str,
    example: Object,
    operations: Sequence[str] = ("CREATE", "UPDATE"),
    statuses: bool = True,
    user: str = "",
    until: asyncio.Event | None = None,
) -> AsyncIterator[asyncio.Event]:
    """Refuse writes of a kind during the block. Yield an event, which is set once one is refused.

    Args:
        api: A client with the rights of an administrator.
        kind: The kind.
        namespace: The namespace of the objects.
        marker: Text in the JSON of refused objects.
        code: Code of the refusal.
        words: Message of the refusal.
        example: An object for dry runs, which show when the API server calls the webhook.
        operations: The operations to refuse. Of a deletion, the object is the one that is stored.
        statuses: Whether to refuse those of the status, too.
        user: Text in the name of the user whose writes are refused; everybody's if it is empty.
        until: Let the writes wait for this event, and do not refuse them.
    """
    called, refused = asyncio.Event(), asyncio.Event()

    async def review(request: web.Request) -> web.Response:
        called.set()
        body: dict[str, Any] = await request.json()
        response: dict[str, Any] = {"uid": body["request"]["uid"], "allowed": True}
        asked = body["request"]
        meant = asked["operation"] in operations and (statuses or not asked.get("subResource"))
        meant = meant and user in asked["userInfo"]["username"]
        if meant and marker in json.dumps(asked["object"] or asked["oldObject"]):
            if until:
                await until.wait()
            else:
                response |= {"allowed": False, "status": {"code": code, "message": words}}
            refused.set()
        return web.json_response({**body, "request": None, "response": response})

    certificate, key = self_signed(HOST)
    app = web.Application()
    app.router.add_post("/", review)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0, ssl_context=tls(certificate, key)).start()
    url = f"https://{HOST}:{runner.addresses[0][1]}/"
    body = _configuration(kind, namespace, url, certificate)
    configuration = await api.create(WEBHOOKS, body, manager="test")
    try:
        async with asyncio.timeout(SECONDS):
            while not called.is_set():
                await api.create(kind, example, manager="test", dry_run=True)
        yield refused
    finally:
        meta = configuration["metadata"]
        await api.delete(WEBHOOKS, meta["name"], None, uid=meta["uid"])
        await runner.cleanup()


def _configuration(kind: Kind, namespace: str, url: str, certificate: bytes) -> Object:
    return {
        "apiVersion": WEBHOOKS.api_version,
        "kind": WEBHOOKS.kind,
        "metadata": {"name": f"test-{uuid.uuid4().hex[:8]}"},
        "webhooks": [
            {
                "name": f"test.{kind.plural}.{kind.group or 'core'}",
                "clientConfig": {"url": url, "caBundle": base64.b64encode(certificate).decode()},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": [kind.group],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE", "DELETE"],
                        "resources": [kind.plural, f"{kind.plural}/status"],
                    }
                ],
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
