"""A model that is edited, and the watches that show Ready and the version that answers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.rig import CPU, GPU, MANAGER, Sightings, deployment
from benchmarks.truth.ledger import Ledger, names_newest
from benchmarks.truth.node import IMAGE, MISSING_IMAGE, VERSION, Node
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_simulators.steps import FAIL_LABEL, RUNS_ANNOTATION

QUIET: Final = 5.0
"""Seconds without a change after which an edit is over: longer than any provider delays a status."""
LONGEST: Final = 60.0
"""Seconds after which an edit is over in any case."""
FAILURES: Final = {"kaito": "image-pull", "dynamo": "stuck", "kuberay": "deploy-failed"}
"""The failure to request from each simulated operator. Provider direct gets a missing image instead."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The processes and the watches of a run. `upstream` is the watch of each provider's kind."""

    suite: Suite
    client: Client
    models: Sightings
    upstream: dict[str, Sightings]
    node: Node

    def upstream_pid(self, provider: str) -> int:
        """Return the process that acts on the provider's upstream objects."""
        if provider == "direct":
            return self.suite.plane.pids["kube-controller-manager"]
        return self.suite.simulators[-1].pid


@dataclass(slots=True)
class Watched:
    """A model called `m` in a namespace of its own. `number` is the newest version that an edit requested."""

    ground: Ground
    provider: str
    namespace: str
    ledger: Ledger = field(default_factory=Ledger)
    number: int = 0

    @property
    def key(self) -> Key:
        """Return the model's key in the watches."""
        return (self.namespace, "m")

    def answering(self) -> frozenset[str]:
        """Return the versions that answer requests to the model."""
        if self.provider == "direct":
            return self.ground.node.answering(self.namespace)
        upstream = self.ground.upstream[self.provider].objects.get(self.key)
        annotations = (upstream or {"metadata": {}})["metadata"].get("annotations") or {}
        match = VERSION.search(annotations.get(RUNS_ANNOTATION, ""))
        return frozenset(match.groups() if match else ())

    def version(self, number: int | None = None) -> Object:
        """Return the part of a spec that requests a version, by default the next version."""
        self.number = self.number + 1 if number is None else number
        return {"env": [{"name": "TRUTH", "value": f"truth-{self.number}"}]}

    async def create(self) -> None:
        """Create the model, and wait until it serves."""
        # A preset of KAITO takes no env, so it could not name the version.
        spec = CPU if self.provider == "kaito" else GPU
        spec_with_version = {**spec, **self._imaged(self.version(), fails=False)}
        body = deployment("m", self.namespace, spec_with_version, self.provider)
        created = await self.ground.client.create(MODEL_DEPLOYMENTS, body, manager=MANAGER)
        self.ledger.edited(created["metadata"]["generation"], str(self.number))
        await self.ground.models.until(lambda: self._is_ready() and self.answering() == {str(self.number)})

    async def edit(self, spec: Object, *, fails: bool = False) -> None:
        """Patch the model as a user does. `fails` requests pods that do not start."""
        patch: list[Any] = [
            {"op": "add", "path": f"/spec/{name}", "value": value}
            for name, value in self._imaged(spec, fails=fails).items()
        ]
        labels = {FAIL_LABEL: FAILURES[self.provider]} if fails and self.provider in FAILURES else {}
        patch.append({"op": "add", "path": "/metadata/labels", "value": labels})
        edited = await self.ground.client.json_patch(
            MODEL_DEPLOYMENTS, "m", self.namespace, patch, manager=MANAGER
        )
        self.ledger.edited(edited["metadata"]["generation"], str(self.number))

    async def watch(self) -> None:
        """Add each moment to the ledger until cancelled."""
        last = time.perf_counter()
        model, answering = self.ground.models.objects.get(self.key), self.answering()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            if model is not None:
                self.ledger.add(now - last, model, answering)
            last, model, answering = now, self.ground.models.objects.get(self.key), self.answering()

    async def settled(self) -> None:
        """Wait until nothing changes any more."""
        began = time.perf_counter()
        while time.perf_counter() - began < LONGEST:
            changed = max(self.ground.models.last_change, self.ground.upstream[self.provider].last_change)
            if time.perf_counter() - max(changed, began) > QUIET:
                return
            await asyncio.sleep(0.05)

    def _imaged(self, spec: Object, *, fails: bool) -> Object:
        """Return the spec with an image that the simulated node of provider direct has or lacks."""
        if self.provider != "direct":
            return spec
        return {**spec, "image": MISSING_IMAGE if fails else IMAGE}

    def _is_ready(self) -> bool:
        model = self.ground.models.objects.get(self.key)
        return model is not None and names_newest(model)
