"""One model that is edited at random: what the command line predicts, and how the cluster differs from that."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from kubefoundry_cli.model import edited
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.validation import validate
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.command_line import CommandLine
from support.deployments import model_deployment
from support.predictions.compare import Prediction, compared, rendered
from support.predictions.edits import STARTS, some_edit
from support.predictions.world import KINDS, Upstream, is_accepted, registered, settled, upstream_of
from support.upstream import PROVIDERS, STANDINS
from support.waiting import until, until_deployment

SECONDS: Final = 300.0
"""For the controllers to settle an edit: eight retries of a write take less."""

CRDS: Final = [option for name in PROVIDERS for option in ("--crd", str(STANDINS / f"{name}.yaml"))]


@dataclass(slots=True)
class Editor:
    """history: the edits, in the words of the command line. differences: the edits that were predicted wrongly."""

    api: Client
    kubefoundry: CommandLine
    namespace: str
    name: str
    chance: Random
    folder: Path
    history: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    async def once(self) -> None:
        """Make one edit, and record each difference between its prediction and its result."""
        live = await self._live()
        if live is None:
            await self._created()
        elif (roll := self.chance.random()) < 0.05:
            await self._deleted(live)
        elif roll < 0.12 and is_accepted(live):
            await self._ejected_and_imported(live)
        else:
            await self._edited(live, is_paused=roll > 0.93)

    async def _created(self) -> None:
        spec, provider = self.chance.choice(STARTS)
        obj = model_deployment(self.name, self.namespace, spec, provider=provider)
        options = some_edit(self.chance) if self.chance.random() < 0.4 else ()
        obj = edited(obj, options)
        if validate(obj["spec"]):
            return
        file = self.folder / f"{self.name}.yaml"
        file.write_text(yaml.safe_dump(obj))
        self._log(f"create {json.dumps(obj['spec'])}")
        prediction = await self._predicted("-f", str(file))
        render = await CommandLine.offline("render", "-f", str(file), *CRDS)
        await self.api.create(MODEL_DEPLOYMENTS, obj, manager="user")
        after = await self._settled()
        there = await self._upstream(after)
        self._found([*compared(prediction, {}, there, after), *rendered(render, there)])

    async def _edited(self, live: Object, *, is_paused: bool) -> None:
        options = some_edit(self.chance)
        wanted = edited(live, options)
        if is_paused:
            live = await self._annotated("true")
            wanted = edited(live, options)
        self._log(f"{'paused: ' if is_paused else ''}{' '.join(f'--set {one}' for one in options)}")
        before = await self._upstream(live)
        prediction = await self._predicted(self.name, *(part for one in options for part in ("--set", one)))
        try:
            await self._replaced(wanted)
        except ApiError as error:
            if not error.rejected:
                raise
            self._found([] if prediction.plan.code else [f"the API server refused it: {error.message}"])
            await self._annotated(None)
            return
        if is_paused:
            self._found(prediction.not_suspended())
            await self._annotated(None)
        after = await self._settled()
        self._found(compared(prediction, before, await self._upstream(after), after))

    async def _deleted(self, live: Object) -> None:
        self._log("delete")
        await self.api.delete(MODEL_DEPLOYMENTS, self.name, self.namespace, uid=live["metadata"]["uid"])
        await until(self.api, MODEL_DEPLOYMENTS, self.name, self.namespace, lambda obj: obj is None)

    async def _ejected_and_imported(self, live: Object) -> None:
        before = await self._upstream(live)
        [kind] = before
        self._log(f"eject and import {kind}")
        ejected = await self.kubefoundry("eject", self.name, "--yes")
        if ejected.code:
            self._found([f"eject failed: {ejected.err}"])
            return
        shown = await self.kubefoundry("import", f"{kind}/{self.name}", "--dry-run")
        done = await self.kubefoundry("import", f"{kind}/{self.name}", "--yes")
        if (shown.code, done.code) != (0, 0):
            self._found([f"import --dry-run: {shown.code} {shown.err}, import: {done.code} {done.err}"])
            await self._removed(kind)
            return
        after = await self._settled()
        there = await self._upstream(after)
        if there[kind].uid != before[kind].uid or there[kind].content != before[kind].content:
            self._found([f"import changed the {kind}"])

    async def _removed(self, kind: str) -> None:
        """Delete the upstream object that no ModelDeployment owns any more."""
        [one] = [one for one in KINDS.values() if one.kind == kind]
        left = await self.api.get(one, self.name, self.namespace)
        await self.api.delete(one, self.name, self.namespace, uid=left["metadata"]["uid"])
        await until(self.api, one, self.name, self.namespace, lambda obj: obj is None)

    async def _predicted(self, *arguments: str) -> Prediction:
        plan = await self.kubefoundry("plan", *arguments, "--server", "-o", "json")
        explain = await self.kubefoundry("explain", *arguments, "-o", "json")
        return Prediction(plan, explain)

    async def _live(self) -> Object | None:
        try:
            return await self.api.get(MODEL_DEPLOYMENTS, self.name, self.namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            return None

    async def _required(self) -> Object:
        live = await self._live()
        assert live is not None
        return live

    async def _annotated(self, value: str | None) -> Object:
        live = await self._required()
        annotations = {**(live["metadata"].get("annotations") or {})}
        annotations.pop(names.PAUSED_ANNOTATION, None)
        if value:
            annotations[names.PAUSED_ANNOTATION] = value
        patch = [{"op": "add", "path": "/metadata/annotations", "value": annotations}]
        return await self.api.json_patch(MODEL_DEPLOYMENTS, self.name, self.namespace, patch, manager="user")

    async def _replaced(self, wanted: Object) -> Object:
        """Write the spec alone, so that a status written meanwhile is no conflict."""
        patch: list[dict[str, Any]] = [{"op": "replace", "path": "/spec", "value": wanted["spec"]}]
        return await self.api.json_patch(MODEL_DEPLOYMENTS, self.name, self.namespace, patch, manager="user")

    async def _settled(self) -> Object:
        known = await registered(self.api)
        return await until_deployment(
            self.api, self.name, self.namespace, lambda obj: settled(obj, known), seconds=SECONDS
        )

    async def _upstream(self, obj: Object) -> dict[str, Upstream]:
        return await upstream_of(self.api, obj, self.name, self.namespace)

    def _log(self, line: str) -> None:
        self.history.append(line)
        self.kinds[line.split()[0]] += 1
        self._write(f"{self.name} {line}")

    def _found(self, differences: list[str]) -> None:
        where = f"{self.name} edit {len(self.history)}, {self.history[-1]}"
        for one in differences:
            self.differences.append(f"{where}: {one}")
            self._write(f"DIFFERENCE {self.differences[-1]}")

    def _write(self, line: str) -> None:
        with (self.folder / "edits.log").open("a") as log:
            log.write(f"{line}\n")
