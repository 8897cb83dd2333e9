"""The API server, as far as we talk to it: JSON over one aiohttp session, every call with a deadline.

Nothing is retried here: whoever calls knows whether the call may be repeated (the work queue does that).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal
from urllib.parse import urlencode

import aiohttp

from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster.credentials import Credentials
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.cluster.rate import RateLimit

DEADLINE: Final = 30.0
"""Seconds that a call may take; the API server's own limit for a request is 60."""

PAGE: Final = 500
"""Objects a list call asks for, as kubectl does."""

APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""An `Accept` without an alternative: a server that cannot leave the content out refuses (406)."""


class Client:
    """Use as `async with Client(credentials, ...) as client`. Calls raise ApiError or Unreachable."""

    def __init__(self, credentials: Credentials, *, user_agent: str, qps: float = 0) -> None:
        """`qps`: requests a second at most, watches apart; 0 leaves it to the API server's own fairness."""
        self._credentials = credentials
        self._user_agent = user_agent
        self._rate = RateLimit(qps)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:
        connector = aiohttp.TCPConnector(ssl=self._credentials.tls or False, limit=64)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._user_agent, "Accept": "application/json"},
            timeout=aiohttp.ClientTimeout(total=DEADLINE, sock_connect=5),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session:
            await self._session.close()

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        return await self._call("GET", path(kind, namespace, name))

    async def get_metadata(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """The object's metadata; its content is not sent."""
        return await self._call("GET", path(kind, namespace, name), accept=METADATA_ONLY)

    async def read(self, url: str) -> Object:
        """GET of a path that is no resource, for example `/version`."""
        return await self._call("GET", url)

    async def list(
        self, kind: Kind, namespace: str | None = None, *, selector: Mapping[str, str] | None = None
    ) -> tuple[list[Object], str]:
        """All objects, page by page, and the resource version to watch from.

        `selector`: `labelSelector` and `fieldSelector` parameters.
        """
        items: list[Object] = []
        parameters: dict[str, str] = {**(selector or {}), "limit": str(PAGE)}
        while True:
            page = await self._call("GET", path(kind, namespace), parameters)
            items.extend(page.get("items") or ())
            token = page["metadata"].get("continue")
            if not token:
                return items, page["metadata"]["resourceVersion"]
            parameters["continue"] = token

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str,
        seconds: int,
        silence: float,
        selector: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Object]:
        """Watch events from `resource_version` on, bookmarks included, until the server ends the watch.

        seconds: how long the server is asked to keep it. silence: seconds without a byte after which the
        connection counts as dead. Raises Unreachable then, ApiError when the watch is refused.
        """
        parameters = {
            **(selector or {}),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        url = path(kind, namespace)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=silence)
        try:
            async with self._open().get(
                self._url(url, parameters), headers=self._authorization(), timeout=timeout
            ) as response:
                if response.status != 200:
                    raise await self._error(response, f"WATCH {url}")
                # Not readline(): aiohttp bounds a line at 128 KiB, and a CRD alone may have a megabyte.
                rest = bytearray()
                async for chunk in response.content.iter_any():
                    start = 0
                    while (end := chunk.find(b"\n", start)) >= 0:
                        rest += chunk[start:end]
                        if rest.strip():
                            yield json.loads(rest)
                        rest.clear()
                        start = end + 1
                    rest += chunk[start:]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"WATCH {url}: {error or type(error).__name__}") from error

    async def apply(
        self, kind: Kind, body: Object, *, manager: str, force: bool = True, dry_run: bool = False
    ) -> Object:
        """Server-side apply of the object that `body` names; the answer is the object as stored."""
        return await self._apply(kind, body, "", manager, force, dry_run)

    async def apply_status(self, kind: Kind, body: Object, *, manager: str, force: bool = True) -> Object:
        """Server-side apply of the status subresource."""
        return await self._apply(kind, body, "/status", manager, force, False)

    async def create(self, kind: Kind, body: Object, *, manager: str, dry_run: bool = False) -> Object:
        parameters = {"fieldManager": manager, "fieldValidation": "Strict"}
        if dry_run:
            parameters["dryRun"] = "All"
        return await self._call("POST", path(kind, body["metadata"].get("namespace")), parameters, body)

    async def replace(self, kind: Kind, body: Object, *, manager: str) -> Object:
        """PUT: refused with a conflict unless `body` carries the current resource version."""
        meta = body["metadata"]
        return await self._call(
            "PUT", path(kind, meta.get("namespace"), meta["name"]), {"fieldManager": manager}, body
        )

    async def json_patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        operations: Sequence[Mapping[str, Any]],
        *,
        manager: str,
        subresource: Literal["", "/status"] = "",
    ) -> Object:
        url = path(kind, namespace, name) + subresource
        return await self._call("PATCH", url, {"fieldManager": manager}, operations, JSON_PATCH)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        *,
        uid: str,
        propagation: Literal["Background", "Foreground", "Orphan"] = "Background",
    ) -> None:
        """Delete that very object: another one of the same name is a conflict."""
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {"uid": uid},
        }
        await self._call("DELETE", path(kind, namespace, name), None, body)

    async def _apply(
        self, kind: Kind, body: Object, subresource: str, manager: str, force: bool, dry_run: bool
    ) -> Object:
        meta = body["metadata"]
        # Strict: a field that the schema does not know is an error to us, never silently lost.
        parameters = {"fieldManager": manager, "fieldValidation": "Strict", "force": str(force).lower()}
        if dry_run:
            parameters["dryRun"] = "All"
        url = path(kind, meta.get("namespace"), meta["name"]) + subresource
        return await self._call("PATCH", url, parameters, body, APPLY)

    async def _call(
        self,
        method: str,
        url: str,
        parameters: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Object:
        headers = {"Accept": accept, **self._authorization()}
        data: bytes | None = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body, separators=(",", ":")).encode()
        await self._rate.turn()
        try:
            async with self._open().request(
                method, self._url(url, parameters), headers=headers, data=data
            ) as response:
                if response.status >= 400:
                    raise await self._error(response, f"{method} {url}")
                answer: Object = json.loads(await response.read())
                return answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"{method} {url}: {error or type(error).__name__}") from error

    async def _error(self, response: aiohttp.ClientResponse, request: str) -> ApiError:
        raw = await response.read()
        try:
            body = json.loads(raw)
        except ValueError:
            body = raw.decode(errors="replace")
        after = response.headers.get("Retry-After", "")
        return ApiError.from_status(
            response.status, body, retry_after=float(after) if after.isdigit() else None, request=request
        )

    def _authorization(self) -> dict[str, str]:
        token = self._credentials.token()
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client is used outside its `async with`")
        return self._session

    def _url(self, url: str, parameters: Mapping[str, str] | None) -> str:
        query = f"?{urlencode(parameters)}" if parameters else ""
        return f"{self._credentials.server}{url}{query}"


def path(kind: Kind, namespace: str | None = None, name: str | None = None) -> str:
    """URL path of a collection or an object."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    inside = f"/namespaces/{namespace}" if namespace and kind.namespaced else ""
    return f"{root}{inside}/{kind.plural}" + (f"/{name}" if name else "")
