"""What users and administrators do meanwhile: random edits of ModelDeployments, and of what was made for them."""

from __future__ import annotations

import asyncio
import copy
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from support.deployments import CPU, DISAGGREGATED, GPU, model_deployment
from support.kinds import UPSTREAM

T = TypeVar("T")

NAMES: Final = tuple(f"m{number}" for number in range(6))

SERVED: Final[tuple[tuple[dict[str, Any], str | None], ...]] = (
    (GPU, "kaito"),
    (GPU, "dynamo"),
    (GPU, "kuberay"),
    (GPU, None),
    (CPU, "kaito"),
    (CPU, None),
    (DISAGGREGATED, "dynamo"),
    (DISAGGREGATED, "kuberay"),
    ({**GPU, "model": {"id": "org/other"}}, "dynamo"),
    ({**GPU, "env": [{"name": "GREETING", "value": "😀"}]}, "kuberay"),
)
"""Specs that the providers take, and who is to serve them."""

REFUSED: Final[tuple[tuple[dict[str, Any], str | None], ...]] = (
    (CPU, "dynamo"),
    (GPU, "dynamoo"),
    (DISAGGREGATED, "kaito"),
    ({**CPU, "engine": {"type": "llamacpp"}, "image": None}, "kuberay"),
)
"""And those that end in a condition."""

PATIENCE: Final = 180.0
"""Seconds within which a restarted API server takes requests again."""

BY_HAND: Final = 2
"""Changes by hand of one upstream object: a provider puts back five in ten minutes."""


@dataclass(slots=True)
class Editor:
    """random: decides on everything but what is there to be edited."""

    api: Client
    namespace: str
    random: random.Random
    done: Counter[str] = field(default_factory=Counter)
    by_hand: Counter[str] = field(default_factory=Counter)

    async def once(self) -> None:
        """One edit; what is refused or meets nothing counts as well."""
        edits: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self._written, 8),
            (self._scaled, 4),
            (self._deleted, 2),
            (self._annotated, 3),
            (self._finalizers_removed, 1),
            (self._status_by_force, 1),
            (self._changed_by_hand, 2),
            (self._upstream_deleted, 1),
        ]
        edit = self.random.choices([edit for edit, _ in edits], [weight for _, weight in edits])[0]
        self.done[edit.__name__.strip("_")] += 1
        await persistently(edit)

    async def settle(self) -> dict[str, Object]:
        """Ends with specs that can be served, and nothing that keeps them from being so; their specs by name."""
        for name in NAMES:
            live = await persistently(partial(self._live, name))
            if live is not None and live["metadata"].get("deletionTimestamp") is None:
                spec, provider = self.random.choice(SERVED)
                await persistently(partial(self._write, name, spec, provider, final=True))
        found, _ = await self.api.list(MODEL_DEPLOYMENTS, self.namespace)
        return {
            item["metadata"]["name"]: item["spec"]
            for item in found
            if not item["metadata"].get("deletionTimestamp")
        }

    async def _live(self, name: str | None = None) -> Object | None:
        try:
            return await self.api.get(MODEL_DEPLOYMENTS, name or self.random.choice(NAMES), self.namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            return None

    async def _written(self) -> None:
        choices = SERVED if self.random.random() < 0.8 else REFUSED
        spec, provider = self.random.choice(choices)
        await self._write(self.random.choice(NAMES), spec, provider)

    async def _write(self, name: str, spec: Object, provider: str | None, *, final: bool = False) -> None:
        """As `kubectl replace -f` of a file: of what others have put into the metadata nothing is left."""
        body = model_deployment(name, self.namespace, copy.deepcopy(spec), provider=provider)
        body["spec"] = {key: value for key, value in body["spec"].items() if value is not None}
        live = await self._live(name)
        try:
            if live is None:
                await self.api.create(MODEL_DEPLOYMENTS, body, manager="user")
                return
            kept = (
                {}
                if self.random.random() < 0.5 and not final
                else {"finalizers": live["metadata"].get("finalizers", [])}
            )
            body["metadata"] |= {"resourceVersion": live["metadata"]["resourceVersion"], **kept}
            await self.api.replace(MODEL_DEPLOYMENTS, body, manager="user")
        except ApiError as error:
            if not error.rejected or final:
                raise

    async def _scaled(self) -> None:
        await self._patched(
            [{"op": "add", "path": "/spec/scaling/replicas", "value": self.random.randint(0, 3)}]
        )

    async def _deleted(self) -> None:
        if live := await self._live():
            await self.api.delete(
                MODEL_DEPLOYMENTS, live["metadata"]["name"], self.namespace, uid=live["metadata"]["uid"]
            )

    async def _annotated(self) -> None:
        name, value = self.random.choice(
            [
                (names.PAUSED_ANNOTATION, "true"),
                (names.PAUSED_ANNOTATION, "false"),
                (names.DRY_RUN_ANNOTATION, "true"),
                (names.DRY_RUN_ANNOTATION, "false"),
                (names.REFRESH_ANNOTATION, str(self.random.random())),
                (names.RESELECT_ANNOTATION, str(self.random.random())),
            ]
        )
        if live := await self._live():
            annotations = {**(live["metadata"].get("annotations") or {}), name: value}
            await self._patched([{"op": "add", "path": "/metadata/annotations", "value": annotations}], live)

    async def _finalizers_removed(self) -> None:
        await self._patched([{"op": "add", "path": "/metadata/finalizers", "value": []}])

    async def _status_by_force(self) -> None:
        if live := await self._live():
            meta = live["metadata"]
            body = {
                "apiVersion": live["apiVersion"],
                "kind": live["kind"],
                "metadata": {"name": meta["name"], "namespace": self.namespace},
                "status": {"phase": "Running", "message": "by hand"},
            }
            await self.api.apply_status(MODEL_DEPLOYMENTS, body, manager="somebody")
            del body["status"]
            await self.api.apply_status(MODEL_DEPLOYMENTS, body, manager="somebody")

    async def _patched(self, patch: list[dict[str, Any]], live: Object | None = None) -> None:
        live = live or await self._live()
        if live is not None:
            name = live["metadata"]["name"]
            try:
                await self.api.json_patch(MODEL_DEPLOYMENTS, name, self.namespace, patch, manager="user")
            except ApiError as error:
                if not (error.rejected or error.not_found):
                    raise

    async def _upstream(self) -> tuple[str, Object] | None:
        provider = self.random.choice(list(UPSTREAM))
        found, _ = await self.api.list(UPSTREAM[provider], self.namespace)
        return (provider, self.random.choice(found)) if found else None

    async def _changed_by_hand(self) -> None:
        chosen = await self._upstream()
        if chosen is None:
            return
        provider, live = chosen
        meta = live["metadata"]
        self.by_hand[meta["name"]] += 1
        if self.by_hand[meta["name"]] > BY_HAND:
            return
        pointer = f"/metadata/labels/{names.MANAGED_BY_LABEL.replace('/', '~1')}"
        patch = [{"op": "add", "path": pointer, "value": "somebody"}]
        await self.api.json_patch(UPSTREAM[provider], meta["name"], self.namespace, patch, manager="admin")

    async def _upstream_deleted(self) -> None:
        if chosen := await self._upstream():
            provider, live = chosen
            meta = live["metadata"]
            await self.api.delete(UPSTREAM[provider], meta["name"], self.namespace, uid=meta["uid"])


async def persistently(call: Callable[[], Awaitable[T]]) -> T | None:
    """As a user does: again after a conflict, and where the API server is just being restarted."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await call()
            except ApiError as error:
                if error.not_found:
                    return None
                if error.rejected and error.code != 403:
                    raise
            except Unreachable:
                pass
            await asyncio.sleep(0.1)
