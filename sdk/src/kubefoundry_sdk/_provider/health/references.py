"""The Events `SecretNotFound` and `ConfigMapNotFound`, for a model that refers to a missing object (contract §3).

Only metadata is requested, so the content never leaves the API server. RBAC cannot grant less than `get` on these
kinds, so providers do not have this permission by default. The overlay manifests/secret-check grants it.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Any, Final

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._api.pod_spec import CA_VOLUME
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.permission import may
from kubefoundry_sdk._runtime.recorder import Recorder

FORBIDDEN: Final = 60.0
"""Seconds until a missing permission is checked again, with one request for all models of the process."""

AGAIN: Final = 120.0
"""Seconds until a lookup without a result is repeated: the Event follows a new permission within three minutes."""


class Lookup:
    """The uid and generation of the ModelDeployment whose reference was looked up, and the name."""

    def __init__(self) -> None:
        self.done: tuple[str, int, str] | None = None


class ReferenceCheck:
    """Looks an object up once for each generation of a ModelDeployment that refers to one and does not serve.

    A lookup without a result is repeated, because a new permission causes no event.
    """

    def __init__(self, client: Client, recorder: Recorder, kind: Kind) -> None:
        self._client = client
        self._recorder = recorder
        self._kind = kind
        self._allowed = False
        self._forbidden_until = 0.0
        self._asking = asyncio.Lock()

    async def check(self, deployment: Object, name: str, last: Lookup) -> float | None:
        """Emit the Event if the object of that name is missing. Never raise.

        Returns:
            Seconds until the check has to be repeated, because the API server gave no result; None if it gave one.
        """
        meta = deployment["metadata"]
        reference = (meta["uid"], meta["generation"], name)
        if not name or last.done == reference:
            return None
        if not await self._is_permitted(name):
            return AGAIN
        try:
            await self._client.get_metadata(self._kind, name, meta["namespace"])
        except ApiError as error:
            if not error.not_found:
                self._allowed = self._allowed and error.code != 403
                return AGAIN
            note = f"{self._kind.kind} '{name}' not found in namespace '{meta['namespace']}'"
            self._recorder.event(deployment, "Warning", f"{self._kind.kind}NotFound", note)
        except Unreachable:
            return AGAIN
        last.done = reference
        return None

    async def _is_permitted(self, name: str) -> bool:
        # Reconciles run side by side, and the answer to the first is for all of them.
        async with self._asking:
            now = asyncio.get_running_loop().time()
            if not self._allowed and now >= self._forbidden_until:
                self._forbidden_until = now + FORBIDDEN
                with suppress(ApiError, Unreachable):
                    self._allowed = await may(self._client, "get", self._kind, name)
        return self._allowed


def secret_of(deployment: Object) -> str:
    """Return the name of the Secret in `secrets.huggingFaceToken`, empty if there is none."""
    return ((deployment.get("spec") or {}).get("secrets") or {}).get("huggingFaceToken") or ""


def bundle_of(upstream: Object | None) -> str:
    """Return the name of the ConfigMap with the CA bundle that an upstream object mounts, empty if it mounts none.

    Others may have written the object, so its values can have any type.
    """
    parts: list[Any] = [upstream]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += part
        elif isinstance(part, dict):
            source = part.get("configMap")
            if part.get("name") == CA_VOLUME and isinstance(source, dict):
                name = source.get("name")
                return name if isinstance(name, str) and re.fullmatch(formats.DNS_SUBDOMAIN, name) else ""
            parts += part.values()
    return ""
