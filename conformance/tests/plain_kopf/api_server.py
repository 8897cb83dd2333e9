"""Requests to the API server, by aiohttp, which kopf installs, with the ServiceAccount's files.

kopf writes only through its handlers, with its own finalizer and annotations. The contract needs server-side apply
with a field manager, dry runs, and a delete with the uid, so this module sends these requests itself.
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
"""Longest wait for a response, in seconds."""

FOLDER: Final = Path(
    os.environ.get("KUBEFOUNDRY_SERVICE_ACCOUNT_DIR", "/var/run/secrets/kubernetes.io/serviceaccount")
)


class Refused(Exception):
    """An error response with the server's message, its HTTP code, and the seconds of Retry-After in `wait`."""

    def __init__(self, code: int, text: str, wait: float | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.wait = wait

    @property
    def final(self) -> bool:
        """Whether a retry is useless until something changes (contract §4)."""
        return 400 <= self.code < 500 and self.code not in (401, 404, 408, 409, 410, 429)


def server() -> str:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}"


def token() -> str:
    """Read the token, which the kubelet replaces from time to time."""
    return (FOLDER / "token").read_text(encoding="utf-8").strip()


def login(**_: Any) -> kopf.ConnectionInfo:
    """Return the credentials of kopf's watches. kopf calls this again if the token has expired."""
    return kopf.ConnectionInfo(server=server(), ca_path=FOLDER / "ca.crt", scheme="Bearer", token=token())


class Api:
    """Sends requests under one field manager. Create it inside the event loop, and close it."""

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
        """Send a request, and return the object. Raises Refused, aiohttp.ClientError or TimeoutError."""
        headers = {"Authorization": f"Bearer {token()}", "Content-Type": kind}
        data = None if body is None else json.dumps(body)
        async with self._session.request(
            method, f"{server()}{path}", params=query, data=data, headers=headers
        ) as response:
            text = await response.text()
            if response.status < 300:
                return dict(json.loads(text))
            try:
                reason = str(json.loads(text)["message"])
            except (ValueError, KeyError, TypeError):
                reason = text or str(response.reason)
            wait = response.headers.get("Retry-After", "")
            raise Refused(response.status, reason, float(wait) if wait.isdigit() else None)

    async def get(self, path: str) -> Object | None:
        """Return an object, or None if the object or its kind does not exist."""
        try:
            return await self.call("GET", path)
        except Refused as error:
            if error.code == 404:
                return None
            raise

    async def apply(self, path: str, body: Object, *, force: bool = True, dry_run: bool = False) -> Object:
        """Apply an object under the field manager, and return it."""
        query = {"fieldManager": self._manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        return await self.call("PATCH", path, body, APPLY, **query, **({"dryRun": "All"} if dry_run else {}))

    async def patch(self, path: str, operations: list[Object]) -> Object:
        """Send a JSON patch."""
        return await self.call("PATCH", path, operations, JSON_PATCH, fieldManager=self._manager)

    async def delete(self, path: str, uid: str) -> None:
        """Delete the object with that uid. A missing object, or another one of its name, counts as deleted."""
        body = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            await self.call("DELETE", path, body)
        except Refused as error:
            if error.code not in (404, 409):
                raise
