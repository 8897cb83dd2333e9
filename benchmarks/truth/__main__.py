"""`python -m benchmarks.truth [--only dynamo,kuberay] [--speed 20]`: how long Ready is wrong, for each kind of edit.

A client that never stops asking watches the ModelDeployment and the upstream object of a real API server. Our
processes are real, the upstream operators are simulated as the real ones were recorded; their annotation shows which
version would answer a request. Each edit sets another value of the variable TRUTH in the model's pods, so that the
version that serves is known. Counted, from the edit until nothing changes any more:

- old: milliseconds in which Ready=True names the newest generation while another version answers
- none: milliseconds of Ready=True while no version answers
- wrong waits: edits at which `kubectl wait --for=condition=Ready` would have returned although another version
  answered. It returns once the condition is True and its observedGeneration is not older than the object's.

The aim of the first and the last is 0, that of the second less than the upstream's own delay.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.rig import CPU, GPU, MANAGER, UPSTREAM, Sightings, deployment, say
from kubefoundry_local.control_plane import ROOT, CannotRun, own_control_plane
from kubefoundry_local.suite import Suite
from kubefoundry_local.upstream_crds import upstream_crds
from kubefoundry_sdk.api import conditions
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk.cluster import credentials
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.reflector import reflect
from kubefoundry_sdk.runtime.store import Key
from kubefoundry_simulators.steps import FAIL_LABEL, RUNS_ANNOTATION

VERSION: Final = re.compile(r"truth-(\d+)")
QUIET: Final = 5.0
"""Seconds without a change after which an edit is over: longer than any provider lets a status settle."""
LONGEST: Final = 60.0
"""Seconds after which an edit is over in any case."""
DOWN: Final = 3.0
"""Seconds for which an upstream or its webhook stays away after an edit."""
FAILURES: Final = {"kaito": "image-pull", "dynamo": "stuck", "kuberay": "deploy-failed"}
REFUSED: Final[Mapping[str, Object]] = {
    "kaito": {"scaling": {"replicas": 2}},
    "dynamo": {"podTemplate": {"metadata": {"labels": {"nvidia.com/dynamo-x": "y"}}}},
    "kuberay": {"podTemplate": {"metadata": {"labels": {"ray.io/x": "y"}}}},
}
HEAD: Final = "| provider | edit | old, ms | none, ms | wrong waits |\n|---|---|---:|---:|---:|"
DOCUMENT: Final = ROOT / "docs" / "truth.md"
TITLE: Final = """# Is Ready true?

For each kind of edit, a client that never stops asking watches a model from the edit until nothing changes any more.
Our processes and the API server are real. The upstream operators are simulated as the real ones were recorded, 20
times faster.

- old: milliseconds in which `Ready=True` names the newest generation while another version answers. The aim is 0.
- none: milliseconds of `Ready=True` while no version answers. Each edit recreates KAITO's Workspace, so there it is
  the time until our process has seen the deletion.
- wrong waits: edits at which `kubectl wait --for=condition=Ready` would have returned too early. The aim is 0. It
  never returns for an edit that is refused or fails.

Written by `make truth`.
"""
WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
)


@dataclass(slots=True)
class Ledger:
    """What is counted of one edit. versions: the version that each generation of the ModelDeployment asks for."""

    versions: dict[int, str] = field(default_factory=dict)
    since: float = 0.0
    old: float = 0.0
    none: float = 0.0
    waits: int = 0
    wrong: int = 0
    _waiting: int = 0

    def edited(self, generation: int, version: str) -> None:
        self.versions[generation] = version
        self._waiting = generation

    def add(self, seconds: float, model: Object, serving: str | None) -> None:
        """For so long, this was the model and that version answered."""
        ready = conditions.find((model.get("status") or {}).get("conditions"), "Ready") or {}
        generation = model["metadata"]["generation"]
        if ready.get("status") != "True" or generation not in self.versions:
            return
        is_newest = ready.get("observedGeneration", 0) >= generation
        is_old = serving is not None and serving != self.versions[generation]
        self.none += seconds * (serving is None)
        self.old += seconds * (is_newest and is_old)
        if is_newest and self._waiting == generation:
            self._waiting = 0
            self.waits += 1
            self.wrong += is_old or serving is None


@dataclass(slots=True)
class Truth:
    """One model of one provider, and the eyes on it."""

    suite: Suite
    client: Client
    models: Sightings
    upstream: Sightings
    provider: str
    namespace: str
    flags: Sequence[str]
    ledger: Ledger = field(default_factory=Ledger)
    number: int = 0
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def key(self) -> Key:
        return (self.namespace, "m")

    def serving(self) -> str | None:
        upstream = self.upstream.objects.get(self.key)
        annotations = (upstream or {"metadata": {}})["metadata"].get("annotations") or {}
        found = VERSION.search(annotations.get(RUNS_ANNOTATION, ""))
        return found[1] if found else None

    def version(self) -> Object:
        """The part of a spec that asks for the next version."""
        self.number += 1
        return {"env": [{"name": "TRUTH", "value": f"truth-{self.number}"}]}

    async def create(self) -> None:
        # a preset of KAITO takes no env, which names the version
        spec = CPU if self.provider == "kaito" else GPU
        body = deployment("m", self.namespace, {**spec, **self.version()}, self.provider)
        made = await self.client.create(MODEL_DEPLOYMENTS, body, manager=MANAGER)
        self.ledger.edited(made["metadata"]["generation"], str(self.number))
        await self.models.until(lambda: self._ready() and self.serving() == str(self.number))

    async def edit(self, spec: Object, fail: str | None = None) -> None:
        """Patch the model as a user does. fail: the failure that the simulated operator is asked for."""
        patch: list[Any] = [
            {"op": "add", "path": f"/spec/{name}", "value": value} for name, value in spec.items()
        ]
        labels = {FAIL_LABEL: fail} if fail else {}
        patch.append({"op": "add", "path": "/metadata/labels", "value": labels})
        made = await self.client.json_patch(MODEL_DEPLOYMENTS, "m", self.namespace, patch, manager=MANAGER)
        self.ledger.edited(made["metadata"]["generation"], str(self.number))

    def _ready(self) -> bool:
        model = self.models.objects.get(self.key) or {}
        ready = conditions.find((model.get("status") or {}).get("conditions"), "Ready") or {}
        generation = (model.get("metadata") or {}).get("generation", 0)
        return ready.get("status") == "True" and ready.get("observedGeneration", 0) >= generation

    async def watch(self) -> None:
        """Charge each moment to what was seen in it; until cancelled."""
        last = time.perf_counter()
        model, serving = self.models.objects.get(self.key), self.serving()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            if model is not None:
                self.ledger.add(now - last, model, serving)
            last, model, serving = now, self.models.objects.get(self.key), self.serving()

    async def settled(self) -> None:
        """Until the newest version serves and is Ready, or nothing changes any more."""
        began = time.perf_counter()
        while time.perf_counter() - began < LONGEST:
            changed = max(self.models.last_change, self.upstream.last_change)
            if time.perf_counter() - max(changed, began) > QUIET:
                return
            await asyncio.sleep(0.05)


async def works(truth: Truth) -> None:
    await truth.edit(truth.version())


async def rolls_slowly(truth: Truth) -> None:
    await truth.edit({"scaling": {"replicas": 3}})
    await truth.settled()
    truth.ledger = Ledger()
    await truth.edit(truth.version())


async def bad_image(truth: Truth) -> None:
    await truth.edit(truth.version(), FAILURES[truth.provider])


async def refused(truth: Truth) -> None:
    await truth.edit({**truth.version(), **REFUSED[truth.provider]})


async def upstream_down(truth: Truth) -> None:
    process = truth.suite.simulators[-1]
    process.send_signal(signal.SIGSTOP)
    try:
        await truth.edit(truth.version())
        await asyncio.sleep(DOWN)
    finally:
        process.send_signal(signal.SIGCONT)


async def webhook_down(truth: Truth) -> None:
    """Whoever writes the upstream kind is refused until the webhook answers again."""
    kind = UPSTREAM[truth.provider]
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": ["*"],
        "resources": [kind.plural],
        "operations": ["CREATE", "UPDATE", "DELETE"],
    }
    webhook = {
        "name": "away.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9"},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "admissionReviewVersions": ["v1"],
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": WEBHOOKS.kind,
        "metadata": {"name": "truth"},
        "webhooks": [webhook],
    }
    made = await truth.client.create(WEBHOOKS, body, manager=MANAGER)
    try:
        await asyncio.sleep(1)  # the API server reads it from a watch of its own
        await truth.edit(truth.version())
        await asyncio.sleep(DOWN)
    finally:
        await truth.client.delete(WEBHOOKS, "truth", None, uid=made["metadata"]["uid"])


async def second_edit(truth: Truth) -> None:
    await truth.edit(truth.version())
    await asyncio.sleep(0.3)
    await truth.edit(truth.version())


async def rollback(truth: Truth) -> None:
    before = truth.number
    await truth.edit(truth.version(), FAILURES[truth.provider])
    await asyncio.sleep(DOWN)
    truth.number = before
    await truth.edit({"env": [{"name": "TRUTH", "value": f"truth-{before}"}]})


async def scale(truth: Truth) -> None:
    await truth.edit({"scaling": {"replicas": 2}})


EDITS: Final[Mapping[str, Callable[[Truth], Awaitable[None]]]] = {
    "works": works,
    "rolls out slowly": rolls_slowly,
    "bad image": bad_image,
    "refused": refused,
    "upstream down": upstream_down,
    "upstream webhook down": webhook_down,
    "second edit": second_edit,
    "rollback": rollback,
    "scale": scale,
}
SINGLE: Final = frozenset({"rolls out slowly", "scale"})
"""Edits of the number of replicas, which KAITO refuses."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--only", default=",".join(UPSTREAM), help="providers, separated by commas")
    parser.add_argument("--edits", default="", help="kinds of edits, separated by commas")
    parser.add_argument("--speed", type=float, default=20, help="of the simulated operators (default 20)")
    parser.add_argument(
        "--write", action="store_true", help="also write docs/truth.md, which shows all edits"
    )
    chosen = parser.parse_args()
    if chosen.write and (chosen.only, chosen.edits, chosen.speed) != (",".join(UPSTREAM), "", 20):
        parser.error("--write needs all providers and edits at the usual speed: leave the other options out")
    edits = [edit for edit in EDITS if edit in (chosen.edits.split(",") if chosen.edits else EDITS)]
    ledgers: dict[tuple[str, str], Ledger] = {}
    failures: list[str] = []
    try:
        with tempfile.TemporaryDirectory(prefix="kubefoundry-truth-") as folder:
            ledgers = asyncio.run(_measure(Path(folder), chosen.only.split(","), edits, chosen.speed))
        if chosen.write:
            DOCUMENT.write_text("\n".join([TITLE, HEAD, *map(_row, ledgers, ledgers.values()), ""]))
    except* CannotRun as group:
        failures = [str(error) for error in group.exceptions]
    for failure in failures:
        sys.stderr.write(f"truth: {failure}\n")
    return 0 if not failures and all(map(_is_true, ledgers, ledgers.values())) else 1


def _is_true(key: tuple[str, str], ledger: Ledger) -> bool:
    """Check whether Ready was true. Only KAITO, which recreates, may stop serving before we can see it."""
    return ledger.old == ledger.wrong == 0 and (ledger.none == 0 or key[0] == "kaito")


async def _measure(
    folder: Path, providers: Sequence[str], edits: Sequence[str], speed: float
) -> dict[tuple[str, str], Ledger]:
    ledgers: dict[tuple[str, str], Ledger] = {}
    print(HEAD, flush=True)
    async with _started(folder, providers, speed) as (suite, client, models, upstream):
        for provider in providers:
            for number, edit in enumerate(edits):
                if provider == "kaito" and edit in SINGLE:
                    continue
                namespace = f"truth-{provider}-{number}"
                truth = Truth(suite, client, models, upstream[provider], provider, namespace, ())
                ledger = ledgers[provider, edit] = await _measured(truth, edit)
                print(_row((provider, edit), ledger), flush=True)
    return ledgers


def _row(key: tuple[str, str], ledger: Ledger) -> str:
    old, none = (f"{1000 * seconds:.0f}" for seconds in (ledger.old, ledger.none))
    return f"| {' | '.join(key)} | {old} | {none} | {ledger.wrong} of {ledger.waits} |"


async def _measured(truth: Truth, edit: str) -> Ledger:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": truth.namespace}}
    await truth.client.create(Kind("", "v1", "namespaces", "Namespace", False), body, manager=MANAGER)
    await truth.create()
    await truth.settled()
    truth.ledger = Ledger()
    eyes = asyncio.create_task(truth.watch())
    await EDITS[edit](truth)
    await truth.settled()
    eyes.cancel()
    model = truth.models.objects[truth.key]
    await truth.client.delete(MODEL_DEPLOYMENTS, "m", truth.namespace, uid=model["metadata"]["uid"])
    await truth.models.until(lambda: truth.key not in truth.models.objects)
    return truth.ledger


@asynccontextmanager
async def _started(
    folder: Path, providers: Sequence[str], speed: float
) -> AsyncIterator[tuple[Suite, Client, Sightings, Mapping[str, Sightings]]]:
    """A control plane, our processes and the simulated operators, ready. All of it ends with the block."""
    say("starting the control plane, our processes and the simulated operators")
    flags = ["--timeout", "10m", *(flag for crd in upstream_crds() for flag in ("--crds", str(crd.file)))]
    with own_control_plane(folder / "plane", flags) as plane:
        suite = Suite(plane, folder / "suite")
        suite.install_ground()
        try:
            suite.simulate(*UPSTREAM, flags=["--speed", str(speed)])
            suite.start("core", "selector", *providers)
            async with (
                Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent=MANAGER) as client,
                asyncio.TaskGroup() as group,
            ):
                models, upstream = Sightings(), {provider: Sightings() for provider in providers}
                watches = [group.create_task(reflect(client, MODEL_DEPLOYMENTS, models))]
                watches += [
                    group.create_task(reflect(client, UPSTREAM[provider], sink))
                    for provider, sink in upstream.items()
                ]
                yield suite, client, models, upstream
                for watch in watches:
                    watch.cancel()
        finally:
            suite.stop()


if __name__ == "__main__":
    sys.exit(main())
