"""The example's provider with a fault, which the variable `KUBEFOUNDRY_FAULT` names. Run as a program.

The faults are those of a process, so most of them change its requests, by a client of its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from prometheus_client import Histogram

from kubefoundry_sdk import Operator, SelectionRule
from kubefoundry_sdk._api import handover as acceptance
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import EVENTS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, SECRETS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider import run
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.reconcile import handover, recreate
from kubefoundry_sdk._runtime import lease, metrics, process, repairs
from kubefoundry_widgets.provider import NAME, provider

FAULT: Final = os.environ.get("KUBEFOUNDRY_FAULT", "")
MANAGER: Final = names.provider_manager(NAME)
FINALIZER: Final = names.provider_finalizer(NAME)
LONG: Final = 3600.0


class Wrong(Client):
    """A client that changes requests by the fault."""

    async def apply(
        self, kind: Kind, body: Object, *, manager: str, force: bool = True, dry_run: bool = False
    ) -> Object:
        if kind == PROVIDER_CONFIGS and FAULT == "REG-1":
            force = True
        if (
            kind == MODEL_DEPLOYMENTS
            and FAULT == "WRI-3"
            and FINALIZER in body["metadata"].get("finalizers", ())
        ):
            # The finalizer is written after the upstream object. Until then only this response has it.
            live = await self.get(kind, body["metadata"]["name"], body["metadata"]["namespace"])
            live["metadata"]["finalizers"] = [FINALIZER]
            self.later = body
            return live
        if kind.plural == "widgets":
            if FAULT == "WRI-1":
                body["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = False
            if FAULT == "WRI-8":
                dry_run = False
            try:
                stored = await super().apply(kind, body, manager=manager, force=force, dry_run=dry_run)
            except ApiError:
                if FAULT == "WRI-9":
                    self.stream = asyncio.create_task(self._repeat(body, manager))
                raise
            await self._catch_up(manager)
            return stored
        return await super().apply(kind, body, manager=manager, force=force, dry_run=dry_run)

    async def _repeat(self, body: Object, manager: str) -> None:
        """Send a refused request again and again."""
        for _ in range(200):
            with suppress(ApiError):
                await super().apply(WIDGETS, body, manager=manager)
            await asyncio.sleep(0.05)

    stream: asyncio.Task[None] | None = None
    later: Object | None = None
    ignored: set[str] = set()  # noqa: RUF012 (all copies of the client in the process share it)

    async def _catch_up(self, manager: str) -> None:
        if self.later is not None:
            body, self.later = self.later, None
            await super().apply(MODEL_DEPLOYMENTS, body, manager=manager)

    async def create(self, kind: Kind, body: Object, *, manager: str, dry_run: bool = False) -> Object:
        if kind.plural == "widgets" and FAULT == "WRI-1":
            body["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = False
        if kind.plural == "widgets" and dry_run and FAULT == "WRI-4":
            return body
        if kind.plural == "widgets" and FAULT == "WRI-8":
            dry_run = False
        if kind == EVENTS and FAULT == "LEV-3" and body["reason"] == "FinalizerTimeout":
            return body
        if kind == EVENTS and FAULT == "STA-5":
            again = {**body, "metadata": {**body["metadata"], "name": f"{body['metadata']['name']}-again"}}
            await super().create(kind, again, manager=manager)
        return await super().create(kind, body, manager=manager, dry_run=dry_run)

    async def apply_status(self, kind: Kind, body: Object, *, manager: str, force: bool = True) -> Object:
        status = body.get("status")
        if kind == PROVIDER_CONFIGS and status:
            self._registration(status)
        if kind == MODEL_DEPLOYMENTS:
            if status is None and FAULT == "STA-3":
                body = {**body, "status": {"message": "kept"}}
            if status:
                await self._deployment(body, status)
        stored = await super().apply_status(kind, body, manager=manager, force=force)
        if kind == MODEL_DEPLOYMENTS:
            # The provider treats the response like an event, and it may be the first to show a deletion.
            await self._seen(stored)
        return stored

    def _registration(self, status: dict[str, Any]) -> None:
        if FAULT == "REG-2":
            # Slower than the limit of the readers, with a margin for a busy machine.
            status["lastHeartbeat"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() // 15 * 15))
        if FAULT == "REG-3":
            status["ready"] = True
        if FAULT == "REG-4":
            for item in status["conditions"]:
                item["reason"], item["message"] = "Missing", "something is missing"

    async def _deployment(self, body: Object, status: dict[str, Any]) -> None:
        conditions = {item["type"]: item for item in status.get("conditions", ())}
        created = conditions.get("ResourceCreated", {}).get("reason")
        name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
        if FAULT == "WRI-2" and created == "NameConflict":
            claim = [{"op": "add", "path": "/metadata/labels", "value": {"claimed": "true"}}]
            await super().json_patch(WIDGETS, name, namespace, claim, manager=MANAGER)
        if FAULT == "WRI-5" and created == "ApplyRejected":
            status["phase"] = "Failed"
        if FAULT == "OBS-6" and status.get("phase") != "Running":
            status["endpoint"] = {"service": name, "port": 8000}
        if FAULT == "OBS-10" and "Ready" in conditions:
            conditions["Ready"]["observedGeneration"] = conditions["ProviderCompatible"]["observedGeneration"]
        if FAULT == "STA-1":
            other = {"phase": status.get("phase", "Pending")}
            plain = {key: body["metadata"][key] for key in ("name", "namespace", "uid")}
            await super().apply_status(
                MODEL_DEPLOYMENTS, {**body, "metadata": plain, "status": other}, manager="another-manager"
            )
            del body["metadata"]["resourceVersion"]
        if FAULT == "STA-4":
            for item in conditions.values():
                item["lastTransitionTime"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    async def delete(self, kind: Kind, name: str, namespace: str | None, **more: Any) -> None:
        await super().delete(kind, name, namespace, **more)
        if FAULT == "LEV-1" and kind.plural == "widgets":
            live = await self.get(MODEL_DEPLOYMENTS, name, namespace)
            if not live["metadata"].get("deletionTimestamp") and live["status"]["provider"]["name"] != NAME:
                free = [{"op": "remove", "path": "/metadata/finalizers"}]
                await super().json_patch(MODEL_DEPLOYMENTS, name, namespace, free, manager=MANAGER)

    async def watch(self, kind: Kind, namespace: str | None = None, **more: Any) -> AsyncIterator[Any]:
        async for event in super().watch(kind, namespace, **more):
            if kind == MODEL_DEPLOYMENTS and event["type"] != "BOOKMARK":
                if event["object"]["metadata"]["uid"] in self.ignored:
                    continue
                await self._seen(event["object"])
            yield event

    async def pages(self, kind: Kind, namespace: str | None = None, **more: Any) -> AsyncIterator[Any]:
        if kind == MODEL_DEPLOYMENTS and FAULT == "PRO-3":
            await self._denied()
        async for page, version in super().pages(kind, namespace, **more):
            if kind == MODEL_DEPLOYMENTS and FAULT == "PRO-5":
                # The process never resumes models of an earlier process.
                begun = [obj for obj in page if FINALIZER in (obj["metadata"].get("finalizers") or ())]
                self.ignored |= {obj["metadata"]["uid"] for obj in begun}
                page = [obj for obj in page if obj not in begun]
            for obj in page if kind == MODEL_DEPLOYMENTS else ():
                await self._seen(obj)
            yield page, version

    async def _denied(self) -> None:
        try:
            async for _ in super().pages(SECRETS):
                pass
        except ApiError:
            pass

    async def _seen(self, obj: Object) -> None:
        """Change a ModelDeployment that the process receives, or write to it, by the fault."""
        meta = obj["metadata"]
        notes = meta.get("annotations") or {}
        # The second of them obeys only until it has begun with a model.
        if FAULT == "WRI-7" or (FAULT == "WRI-7 begun" and FINALIZER in (meta.get("finalizers") or ())):
            notes.pop(names.PAUSED_ANNOTATION, None)
        if FAULT == "LEV-2" and notes.get(names.PAUSED_ANNOTATION) == "true":
            meta.pop("deletionTimestamp", None)
        if FAULT == "STA-2" and "example.com/touched" in notes:
            note = {"metadata": {key: meta[key] for key in ("name", "namespace", "uid")}}
            head = {"apiVersion": names.API_VERSION, "kind": names.MODEL_DEPLOYMENT}
            note["metadata"]["annotations"] = {"example.com/seen": notes["example.com/touched"]}
            await super().apply(MODEL_DEPLOYMENTS, {**head, **note}, manager="notes")


WIDGETS: Final = Kind("example.com", "v1", "widgets", "Widget")


def build(options: Namespace) -> Provider:
    """Return the provider, with the faults of its declaration."""
    sound = provider(options.default_images)
    if FAULT == "REG-5":
        return replace(sound, selection_rules=(SelectionRule("spec.engine.type ==", priority=1),))
    if FAULT == "SUP-1":
        return replace(
            sound,
            render=lambda deployment, schema: sound.render(
                replace(deployment, spec=deployment.spec.model_copy(update={"env": []})), schema
            ),
        )
    if FAULT == "PRO-4":
        return replace(sound, operator=Operator("widget-operator", ("widgets-system",)))
    return sound


def main(arguments: Sequence[str]) -> int:
    """Run the provider with the fault, and return its exit code."""
    vars(process)["Client"] = Wrong
    if FAULT == "WRI-6":
        vars(repairs)["LIMIT"] = 50
    if FAULT == "REN-7":
        # It remembers nothing of what it wrote, so its next release writes its own values.
        vars(recreate)["applied"] = lambda *_: None
    if FAULT == "REG-6":
        setattr(lease.Holder, "keep", _never_ends)  # noqa: B010
        setattr(lease.Holder, "holds", True)  # noqa: B010
    if FAULT == "LEV-4":
        vars(handover)["wait"] = _forever
    if FAULT == "LEV-5":
        vars(acceptance)["states"] = lambda *_: True
    if FAULT == "PRO-1 counted":
        vars(metrics)["RECONCILIATIONS"] = Histogram(
            "unseen", "Nobody reads it.", ["provider"], registry=None
        )
    if FAULT == "PRO-1 served":
        arguments = [*arguments, "--metrics-port=0"]
    code = run.run(NAME, build, arguments=arguments)
    if FAULT == "PRO-2":
        time.sleep(6)
    return code


async def _never_ends(_: lease.Holder) -> None:
    """Keep a Lease without ever looking at it."""
    await asyncio.Event().wait()


_wait: Final = handover.wait


async def _forever(context: Any, *rest: Any) -> Any:
    return await _wait(replace(context, finalizer_timeout=LONG), *rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
