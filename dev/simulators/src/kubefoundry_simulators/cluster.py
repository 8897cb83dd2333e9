"""The API server, as a simulated operator needs it: list and watch, and single writes."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import aiohttp

from kubefoundry_simulators.steps import Object

log = logging.getLogger(__name__)

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"

CONNECTIONS: Final = 16
"""Concurrent requests: enough for a thousand objects, few enough not to overload the server."""
BUSY: Final = frozenset({429, 500, 503, 504})
"""Status codes after which the same request may succeed; 500 also means a webhook that does not answer."""
RETRY_AFTER: Final = 0.5
"""Seconds before a broken watch or a failed request is retried."""

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Refused(Exception):
    """The API server's response to a write that it refused."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Cluster:
    """A connection by kubeconfig."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def close(self) -> None:
        """Close its connections."""
        await self._session.close()

    async def get(self, path: str) -> Object:
        """Raises Refused (404 if it does not exist)."""
        return await self.send("GET", path)

    async def send(
        self, method: str, path: str, body: Any = None, *, content: str = JSON, manager: str = ""
    ) -> Object:
        """One request, retried while the server is down or busy. Raises Refused with its message."""
        params = {"fieldManager": manager} if manager else {}
        if content == APPLY:
            params["force"] = "true"
        data = None if body is None else json.dumps(body)
        while True:
            try:
                async with self._session.request(
                    method, path, params=params, data=data, headers={"Content-Type": content}
                ) as answer:
                    return _object(answer.status, await answer.text())
            except Refused as refusal:
                if refusal.status not in BUSY:
                    raise
                log.info("%s %s again: %s", method, path, refusal)
            except (aiohttp.ClientError, TimeoutError) as error:
                log.info("%s %s again: %s", method, path, error)
            await asyncio.sleep(RETRY_AFTER)

    async def watch(self, path: str, selector: str = "") -> AsyncIterator[tuple[EventType, Object]]:
        """Every object of a collection, followed by every change, across lost connections. Raises Refused 404."""
        known: dict[str, Object] = {}
        fields = {"fieldSelector": selector} if selector else {}
        while True:
            try:
                listed = await self._list(path, fields)
                items = {item["metadata"]["uid"]: item for item in listed["items"]}
                for uid in known.keys() - items.keys():
                    yield "DELETED", known[uid]
                for item in items.values():
                    yield "ADDED", item
                known = items
                version = listed["metadata"]["resourceVersion"]
                async for type_, object_ in self._stream(path, {**fields, "resourceVersion": version}):
                    if type_ == "DELETED":
                        known.pop(object_["metadata"]["uid"], None)
                    else:
                        known[object_["metadata"]["uid"]] = object_
                    yield type_, object_
            except Refused as refusal:
                if refusal.status == 404:
                    for gone in known.values():
                        yield "DELETED", gone
                    raise
                log.info("listing %s again: %s", path, refusal)
                await asyncio.sleep(RETRY_AFTER)
            except (aiohttp.ClientError, TimeoutError) as error:
                log.info("listing %s again: %s", path, error)
                await asyncio.sleep(RETRY_AFTER)

    async def _list(self, path: str, fields: Mapping[str, str]) -> Object:
        async with self._session.get(path, params=fields) as answer:
            found = _object(answer.status, await answer.text())
        for item in found["items"]:
            # items of a list have neither
            item.setdefault("apiVersion", found["apiVersion"])
            item.setdefault("kind", found["kind"].removesuffix("List"))
        return found

    async def _stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[tuple[EventType, Object]]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        async with self._session.get(path, params={**params, "watch": "1"}, timeout=timeout) as answer:
            if answer.status >= 400:
                raise Refused(answer.status, _message(await answer.text()))
            pending = b""
            async for chunk in answer.content.iter_any():
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise Refused(event["object"].get("code", 410), event["object"].get("message", ""))
                    yield event["type"], event["object"]


async def connect(kubeconfig: Path) -> Cluster:
    """Raises what the `kubernetes` package raises for a file that it cannot use."""
    # In one piece in its thread, which ends its work even if we are cancelled: the client's key may not stay behind.
    loaded, context = await asyncio.to_thread(_loaded, kubeconfig)
    token = loaded.get_api_key_with_prefix("BearerToken", "authorization")
    return Cluster(
        aiohttp.ClientSession(
            base_url=loaded.host,
            headers={"Authorization": token} if token else {},
            connector=aiohttp.TCPConnector(ssl=context, limit=CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=30),
        )
    )


def _loaded(kubeconfig: Path) -> tuple[Any, ssl.SSLContext]:
    # imported here: it takes most of a second, which --help need not wait for
    from kubernetes import client, config

    loaded = client.Configuration()
    # The package writes the client's key to a file, which would stay behind when this process is killed.
    with TemporaryDirectory(prefix="kubeconfig-") as files:
        config.load_kube_config(  # type: ignore[no-untyped-call]
            str(kubeconfig), client_configuration=loaded, temp_file_path=files
        )
        context = ssl.create_default_context(cafile=loaded.ssl_ca_cert)
        if loaded.cert_file:
            context.load_cert_chain(loaded.cert_file, loaded.key_file)
    return loaded, context


def _object(status: int, text: str) -> Object:
    if status >= 400:
        raise Refused(status, _message(text))
    found: Object = json.loads(text)
    return found


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:300]
