"""Core's claims on an API server in memory, and the ModelDeployment that has one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from kubefoundry_core.claims import Claims, Outcome
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.client import Client, over
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._runtime.recorder import Recorder
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk.testing._server.requests import Request
from kubefoundry_sdk.testing._server.server import Server
from kubefoundry_sdk.testing._server.transport import CREDENTIALS, MemoryTransport

KEY = ("n", "m")
TOO_BUSY = ApiError(503, "ServiceUnavailable", "try again")
DENIED = ApiError(403, "Forbidden", "exceeded quota: q")


class Rig:
    """Claims on an API server in memory, whose answers and clock a test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.error: ApiError | Unreachable | None = None
        self.requests: list[str] = []
        self.failing = ""
        self.gate = asyncio.Event()
        self.again: asyncio.Queue[Key] = asyncio.Queue()
        self.server = Server(lambda: datetime(2026, 1, 1, tzinfo=UTC))
        self.server.create_namespace("n")
        transport = MemoryTransport(self.server, user_agent="t", asked=self.asked)
        self.client = over(Client(CREDENTIALS, user_agent="t"), transport)
        self.recorder = Recorder(self.client, component="core", instance="i")
        self.restart()

    def restart(self) -> None:
        """Forget the requests, as a core that has just started."""
        self.claims = Claims(self.client, self.recorder, lambda: self.now)

    def asked(self, request: Request) -> None:
        self.requests.append(request.method)
        if self.error and self.failing in ("", request.method):
            raise self.error

    async def settle(self, live: Object) -> Outcome:
        return await self.claims.settle(KEY, live)


def model(
    *, phase: str = "Pending", is_validated: bool = False, size: str = "1Gi", annotation: str = ""
) -> Object:
    volume = {"name": "weights", "purpose": "modelCache", "claimTemplate": {"size": size}}
    meta = {"name": "m", "namespace": "n", "uid": "u", "generation": 1, "annotations": {annotation: "true"}}
    conditions = [{"type": "Validated", "status": "True", "observedGeneration": 1}] if is_validated else []
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": meta,
        "spec": {"model": {"id": "o/m", "storage": {"volumes": [volume]}}, "engine": {"type": "llamacpp"}},
        "status": {"phase": phase, "conditions": conditions},
    }
