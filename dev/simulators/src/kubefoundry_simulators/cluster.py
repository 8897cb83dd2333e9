"""A small client of the API server for simulated operators: list, watch, and single requests."""

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

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
"""Path of the CRDs."""

CONNECTIONS: Final = 16
"""Concurrent requests: enough for a thousand objects, few enough not to overload the server."""
BUSY: Final = frozenset({429, 500, 503, 504})
"""Status codes after which the same request may succeed; 500 also means a webhook that does not answer."""
RETRY_AFTER: Final = 0.5
"""Seconds before a broken watch or a failed request is retried."""

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Refused(Exception):
    """The API server refused a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Cluster:
    """A connection to an API server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def close(self) -> None:
        """Close the HTTP connections."""
        await self._session.close()

    async def get(self, path: str) -> Object:
        """Read an object.

        Raises:
            Refused: The API server refused the request; 404 if the object does not exist.
        """
        return await self.send("GET", path)

    async def send(
        self, method: str, path: str, body: Any = None, *, content: str = JSON, manager: str = ""
    ) -> Object:
        """Send a request, and retry it while the server is down or busy.

        Args:
            method: HTTP method.
            path: Path of the URL.
            body: Request body, sent as JSON.
            content: Content type. APPLY forces conflicts.
            manager: Field manager of a write.

        Raises:
            Refused: The API server refused the request.
        """
        params = {"fieldManager": manager} if manager else {}
        if content == APPLY:
            params["force"] = "true"
        data = None if body is None else json.dumps(body)
        while True:
            try:
                async with self._session.request(
                    method, path, params=params, data=data, headers={"Content-Type": content}
                ) as response:
                    return _object(response.status, await response.text())
            except Refused as refusal:
                if refusal.status not in BUSY:
                    raise
                log.info("%s %s again: %s", method, path, refusal)
            except (aiohttp.ClientError, TimeoutError) as error:
                log.info("%s %s again: %s", method, path, error)
            await asyncio.sleep(RETRY_AFTER)

    async def watch(self, path: str, selector: str = "") -> AsyncIterator[tuple[EventType, Object]]:
        """Yield every object of a collection, then every change, across lost connections.

        A list after a lost connection yields ADDED for each object again, and DELETED for objects that are gone.

        Raises:
            Refused: The collection does not exist (404).
        """
        objects: dict[str, Object] = {}
        fields = {"fieldSelector": selector} if selector else {}
        while True:
            try:
                listing = await self._list(path, fields)
                items = {item["metadata"]["uid"]: item for item in listing["items"]}
                for uid in objects.keys() - items.keys():
                    yield "DELETED", objects[uid]
                for item in items.values():
                    yield "ADDED", item
                objects = items
                version = listing["metadata"]["resourceVersion"]
                async for type_, object_ in self._stream(path, {**fields, "resourceVersion": version}):
                    _note(objects, type_, object_)
                    yield type_, object_
            except (Refused, aiohttp.ClientError, TimeoutError) as error:
                if _is_missing(error):
                    # The CRD is gone, and its objects with it.
                    for object_ in objects.values():
                        yield "DELETED", object_
                    raise
                log.info("listing %s again: %s", path, error)
                await asyncio.sleep(RETRY_AFTER)

    async def _list(self, path: str, fields: Mapping[str, str]) -> Object:
        async with self._session.get(path, params=fields) as response:
            listing = _object(response.status, await response.text())
        for item in listing["items"]:
            # The API server leaves both out of the items of a list.
            item.setdefault("apiVersion", listing["apiVersion"])
            item.setdefault("kind", listing["kind"].removesuffix("List"))
        return listing

    async def _stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[tuple[EventType, Object]]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        async with self._session.get(path, params={**params, "watch": "1"}, timeout=timeout) as response:
            if response.status >= 400:
                raise Refused(response.status, _message(await response.text()))
            pending = b""
            async for chunk in response.content.iter_any():
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise Refused(event["object"].get("code", 410), event["object"].get("message", ""))
                    yield event["type"], event["object"]


async def connect(kubeconfig: Path) -> Cluster:
    """Connect with the current context of a kubeconfig.

    Raises:
        Exception: Any error of the `kubernetes` package about a file that it cannot use.
    """
    # A thread finishes even if this coroutine is cancelled, so the client's key is always removed from the disk.
    configuration, context = await asyncio.to_thread(_load, kubeconfig)
    token = configuration.get_api_key_with_prefix("BearerToken", "authorization")
    return Cluster(
        aiohttp.ClientSession(
            base_url=configuration.host,
            headers={"Authorization": token} if token else {},
            connector=aiohttp.TCPConnector(ssl=context, limit=CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=30),
        )
    )


def _load(kubeconfig: Path) -> tuple[Any, ssl.SSLContext]:
    """Return the `kubernetes` package's configuration, and a TLS context with the client's certificate."""
    # This import takes most of a second, and --help does not need it.
    from kubernetes import client, config

    configuration = client.Configuration()
    # The package writes the client's key to a file, and would leave it there if this process is killed.
    with TemporaryDirectory(prefix="kubeconfig-") as files:
        config.load_kube_config(  # type: ignore[no-untyped-call]
            str(kubeconfig), client_configuration=configuration, temp_file_path=files
        )
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return configuration, context


def _is_missing(error: Exception) -> bool:
    return isinstance(error, Refused) and error.status == 404


def _note(objects: dict[str, Object], type_: EventType, object_: Object) -> None:
    """Keep the objects by uid up to date with an event."""
    if type_ == "DELETED":
        objects.pop(object_["metadata"]["uid"], None)
    else:
        objects[object_["metadata"]["uid"]] = object_


def _object(status: int, text: str) -> Object:
    if status >= 400:
        raise Refused(status, _message(text))
    object_: Object = json.loads(text)
    return object_


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:300]
