"""The Event `SecretNotFound`, for a ModelDeployment that names a Secret that does not exist (contract §3).

Only metadata is requested, so the content never leaves the API server. RBAC cannot grant less than `get` on Secrets,
so providers do not have this permission by default. The overlay manifests/secret-check grants it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from kubefoundry_sdk._api.kinds import SECRETS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.permission import may
from kubefoundry_sdk._runtime.recorder import Recorder

FORBIDDEN: Final = 60.0
"""Seconds until a missing permission is checked again, with one request for all models of the process."""

AGAIN: Final = 120.0
"""Seconds until a lookup without a result is repeated: the Event follows a new permission within three minutes."""


class SecretLookup:
    """The uid and generation of the ModelDeployment whose Secret was looked up."""

    def __init__(self) -> None:
        self.generation: tuple[str, int] | None = None


class SecretCheck:
    """Looks up the Secret once for each generation of a ModelDeployment that names one and does not serve.

    A lookup without a result is repeated, because a new permission causes no event.
    """

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder
        self._allowed = False
        self._forbidden_until = 0.0
        self._asking = asyncio.Lock()

    async def check(self, deployment: Object, last: SecretLookup) -> float | None:
        """Emit the Event if the Secret is missing. Never raise.

        Returns:
            Seconds until the check has to be repeated, because the API server gave no result; None if it gave one.
        """
        meta = deployment["metadata"]
        name = ((deployment.get("spec") or {}).get("secrets") or {}).get("huggingFaceToken")
        generation = (meta["uid"], meta["generation"])
        if not name or last.generation == generation:
            return None
        if not await self._is_permitted(name):
            return AGAIN
        try:
            await self._client.get_metadata(SECRETS, name, meta["namespace"])
        except ApiError as error:
            if not error.not_found:
                self._allowed = self._allowed and error.code != 403
                return AGAIN
            note = f"Secret '{name}' not found in namespace '{meta['namespace']}'"
            self._recorder.event(deployment, "Warning", "SecretNotFound", note)
        except Unreachable:
            return AGAIN
        last.generation = generation
        return None

    async def _is_permitted(self, name: str) -> bool:
        # Reconciles run side by side, and the answer to the first is for all of them.
        async with self._asking:
            now = asyncio.get_running_loop().time()
            if not self._allowed and now >= self._forbidden_until:
                self._forbidden_until = now + FORBIDDEN
                with suppress(ApiError, Unreachable):
                    self._allowed = await may(self._client, "get", SECRETS, name)
        return self._allowed
