"""Requests to servers that tenants run: bounded in time and bytes, and never redirected to another address.

Tenants control their images and Services, but not the network that the requests come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import aiohttp

LIMIT: Final = 1024 * 1024
"""Bytes of a response that are read."""


class NoAnswer(Exception):
    """No usable response; the text says what the server did: "does not answer: …"."""


class TooSlow(NoAnswer):
    """The server may or may not have accepted the request, and had not answered in time."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The response of a tenant's server."""

    status: int
    reason: str
    """The server's own words, on one line."""
    body: bytearray


async def exchange(method: str, url: str, body: Any = None, *, seconds: float) -> Reply:
    """Return the server's response, read within so many seconds. `body` is sent as JSON. Raise NoAnswer."""
    timeout = aiohttp.ClientTimeout(total=seconds)
    # A compressed kilobyte may be a megabyte, which LIMIT does not count.
    headers = {"Accept-Encoding": "identity"}
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=headers, auto_decompress=False) as session,
            session.request(method, url, json=body, allow_redirects=False) as response,
        ):
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise NoAnswer("sends a compressed answer, which was not requested")
            read = bytearray()
            async for chunk in response.content.iter_any():
                read += chunk
                if len(read) > LIMIT:
                    raise NoAnswer(f"answers more than {LIMIT} bytes")
            return Reply(response.status, response.reason or "", read)
    except TimeoutError as error:
        raise TooSlow(f"does not answer within {seconds:.0f} s") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise NoAnswer(f"does not answer: {str(error) or type(error).__name__}") from error
