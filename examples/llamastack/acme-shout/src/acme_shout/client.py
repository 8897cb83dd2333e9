"""Calls the service over its Unix socket or over TCP."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import httpx

UNIX = "http+unix://"
RETRY_SECONDS = 5.0
"""How long a request is tried again while the service restarts. Do not try longer: the caller waits."""
FIRST_DELAY, LONGEST_DELAY = 0.05, 1.0
REQUEST_SECONDS = 60.0

PASSING = (httpx.ConnectError, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
"""Errors of a service that has just ended. A request may be sent twice: it must be safe to repeat."""


class Client:
    def __init__(self, provider: str, url: str, token_file: str) -> None:
        socket = url.removeprefix(UNIX) if url.startswith(UNIX) else None
        self._provider = provider
        self._token_file = token_file
        self._http = httpx.AsyncClient(
            base_url="http://service" if socket else url,
            transport=httpx.AsyncHTTPTransport(uds=socket),
            timeout=REQUEST_SECONDS,
            # The service is in the same pod: no proxy leads there.
            trust_env=False,
        )

    async def post(self, path: str, value: dict[str, Any]) -> Any:
        deadline, delay = time.monotonic() + RETRY_SECONDS, FIRST_DELAY
        while True:
            try:
                response = await self._http.post(path, json=value, headers=self._headers())
                response.raise_for_status()
                return response.json()
            except PASSING as error:
                if time.monotonic() + delay > deadline:
                    name = type(error).__name__
                    raise RuntimeError(f"the service of {self._provider} does not answer: {name}") from error
            await asyncio.sleep(delay)
            delay = min(2 * delay, LONGEST_DELAY)

    async def close(self) -> None:
        await self._http.aclose()

    def _headers(self) -> dict[str, str]:
        if not self._token_file:
            return {}
        # A link could lead to another secret of the server.
        with os.fdopen(os.open(self._token_file, os.O_RDONLY | os.O_NOFOLLOW)) as token:
            return {"Authorization": f"Bearer {token.read()}"}
