"""Waits at the start for an API server that answers, accepts our credentials, and serves the resources we need."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.retry import wait

log = logging.getLogger(__name__)

WAITS: Final = (0.5, 1.0, 2.0, 5.0)
"""Seconds between checks for the API server at the start."""

LONGEST_WAIT: Final = 60.0
"""The longest wait between two checks in seconds, even if a server asks for more."""

SETTLES: Final = 30.0
"""Seconds after which refusals of an API server that was not reachable count: a server that has just started has
not loaded its roles, accounts and CRDs yet."""


class CannotStart(Exception):
    """The process cannot start; the text is one line with the missing part and the remedy."""


@dataclass(frozen=True, slots=True)
class _StartProblem:
    """Why the API server cannot be used yet. `final`: whether the reason shows that waiting cannot help."""

    text: str
    error: ApiError | Unreachable
    final: bool = False


async def api_server(client: Client, needs: str, waiting_for: Callable[[str], None]) -> None:
    """Wait until the API server can be used. Raise CannotStart if waiting cannot help.

    The component cannot work without the API version `needs`. `waiting_for` is called with each reason to wait.
    """
    loop = asyncio.get_running_loop()
    waited = 0
    since: float | None = None
    while (problem := await _find_problem(client, needs)) is not None:
        if problem.final and (since is None or loop.time() - since > SETTLES):
            raise CannotStart(problem.text)
        if not problem.final:
            since = loop.time()
        waiting_for(problem.text)
        if waited in (0, 10) or waited % 100 == 99:
            log.warning("cannot start yet, waiting", extra=logs.values(problem=problem.text))
        await asyncio.sleep(wait(WAITS[min(waited, len(WAITS) - 1)], problem.error, LONGEST_WAIT))
        waited += 1


async def _find_problem(client: Client, needs: str) -> _StartProblem | None:
    """Return the problem that prevents a start, or None.

    One request tells three cases apart: no server, access refused, resources not installed.
    """
    try:
        await client.read(f"/apis/{needs}")
    except Unreachable as error:
        return _StartProblem(f"the API server {client.server} does not answer: {error}", error)
    except ApiError as error:
        if error.not_found:
            text = f"the API server does not serve {needs}: install KubeFoundry's CRDs first"
            return _StartProblem(text, error, final=True)
        text = f"the API server refused the request: {error.message or error}"
        return _StartProblem(text, error, final=error.code == 401)
    return None
