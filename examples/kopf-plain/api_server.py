"""The API server, as far as this provider needs it: aiohttp, which kopf brings along, and the ServiceAccount's files.

kopf itself writes only through its handlers, with finalizer and annotations of its own. What the contract asks for
(server-side apply with a field manager, dry runs, a delete with the uid) are plain requests.
"""

from __future__ import annotations

import json
import os
import ssl
from pathlib import Path
from typing import Any, Final

import aiohttp
import kopf

Object = dict[str, Any]
APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
ANSWER: Final = 10.0
"""Seconds that an answer may take."""

FOLDER: Final = Path(
    os.environ.get("KUBEFOUNDRY_SERVICE_ACCOUNT_DIR", "/var/run/secrets/kubernetes.io/serviceaccount")
)


class Refused(Exception):
    """An answer that is an error. code: of HTTP. The text is the server's own. wait: seconds, of Retry-After."""

    def __init__(self, code: int, text: str, wait: float | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.wait = wait

    @property
    def final(self) -> bool:
        """Whether asking again is no use until something changes (contract §4)."""
        return 400 <= self.code < 500 and self.code not in (401, 404, 408, 409, 410, 429)


def server() -> str:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}"


def token() -> str:
    """Read at each use: the kubelet replaces it."""
    return (FOLDER / "token").read_text(encoding="utf-8").strip()


def login(**_: Any) -> kopf.ConnectionInfo:
    """For kopf's own watches; called again when the server takes the token no longer."""
    return kopf.ConnectionInfo(server=server(), ca_path=FOLDER / "ca.crt", scheme="Bearer", token=token())


class Api:
    """Requests under one field manager. To be made inside the event loop, and closed."""

    def __init__(self, manager: str) -> None:
        self._manager = manager
        tls = ssl.create_default_context(cafile=str(FOLDER / "ca.crt"))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls), timeout=aiohttp.ClientTimeout(total=ANSWER)
        )

    async def close(self) -> None:
        await self._session.close()

    async def call(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", **query: str
    ) -> Object:
        """Raises Refused, aiohttp.ClientError or TimeoutError."""
        headers = {"Authorization": f"Bearer {token()}", "Content-Type": kind}
        data = None if body is None else json.dumps(body)
        async with self._session.request(
            method, f"{server()}{path}", params=query, data=data, headers=headers
        ) as answer:
            text = await answer.text()
            if answer.status < 300:
                return dict(json.loads(text))
            try:
                reason = str(json.loads(text)["message"])
            except (ValueError, KeyError, TypeError):
                reason = text or str(answer.reason)
            wait = answer.headers.get("Retry-After", "")
            raise Refused(answer.status, reason, float(wait) if wait.isdigit() else None)

    async def get(self, path: str) -> Object | None:
        """None where there is no such object, or no such kind."""
        try:
            return await self.call("GET", path)
        except Refused as error:
            if error.code == 404:
                return None
            raise

    async def apply(self, path: str, body: Object, *, force: bool = True, dry_run: bool = False) -> Object:
        """Server-side apply under our field manager; the object as it is then."""
        query = {"fieldManager": self._manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        return await self.call("PATCH", path, body, APPLY, **query, **({"dryRun": "All"} if dry_run else {}))

    async def patch(self, path: str, operations: list[Object]) -> Object:
        """A JSON patch."""
        return await self.call("PATCH", path, operations, JSON_PATCH, fieldManager=self._manager)

    async def delete(self, path: str, uid: str) -> None:
        """That very object; one that is gone already, or another of its name, counts as deleted."""
        body = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            await self.call("DELETE", path, body)
        except Refused as error:
            if error.code not in (404, 409):
                raise
