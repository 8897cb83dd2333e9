"""`python -m benchmarks.truth [--only dynamo,kuberay] [--speed 20]`: measure how long Ready is wrong after edits.

A client watches the ModelDeployment, the upstream object and the pods of a real API server without a pause.
Our processes are real. The upstream operators are simulated as the real ones were recorded; their annotation shows
which version would answer a request. The Deployments and pods of provider direct are those of Kubernetes' own
controllers; their node is simulated. Each edit sets another value of the variable TRUTH in the model's pods, so that
the version that answers is known. Counted, from the edit until nothing changes any more:

- old: milliseconds in which Ready=True names the newest generation while another version answers
- none: milliseconds of Ready=True while no version answers
- wrong waits: edits at which `kubectl wait --for=condition=Ready` would have returned although another version
  answered. It returns once the condition is True and its observedGeneration is not older than the object's.

The aim of the first and the last is 0, that of the second less than the upstream's own delay.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks.rig import KINDS, MANAGER, UPSTREAM, Sightings, say
from benchmarks.truth.edits import EDITS, STOPS_FIRST, applies
from benchmarks.truth.ledger import Ledger
from benchmarks.truth.node import Node
from benchmarks.truth.watched import Ground, Watched
from kubefoundry_local.control_plane import ROOT, CannotRun, own_control_plane
from kubefoundry_local.suite import Suite
from kubefoundry_local.upstream_crds import upstream_crds
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, NAMESPACES, PODS
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.reflector import reflect

SPEED: Final = 20.0
PROVIDERS: Final = ",".join(KINDS)
HEAD: Final = "| provider | edit | old, ms | none, ms | wrong waits |\n|---|---|---:|---:|---:|"
DOCUMENT: Final = ROOT / "docs" / "truth.md"
TITLE: Final = """# Is Ready true?

For each kind of edit, a client that never stops asking watches a model from the edit until nothing changes any more.
Our processes and the API server are real. The operators of KAITO, Dynamo and KubeRay are simulated as the real ones
were recorded, 20 times faster. The Deployments, ReplicaSets and pods of provider direct are those of Kubernetes' own
controllers. Their node is simulated: a pod is ready 0.3 s after its creation, or its image is missing. Kubernetes'
controllers stop for "upstream down" of direct.

- old: milliseconds in which `Ready=True` names the newest generation while another version answers. The aim is 0.
- none: milliseconds of `Ready=True` while no version answers. Each edit recreates KAITO's Workspace, so there it is
  the time until our process has seen the deletion. With rollout "replace", direct stops the only pod first, and it is
  the time until Kubernetes' controllers have counted it and our process has seen that. The aim for the others is 0.
- wrong waits: edits at which `kubectl wait --for=condition=Ready` would have returned too early. The aim is 0. It
  never returns for an edit that is refused or fails.

KAITO has no rows "rolls out slowly" and "scale". A Workspace serves one replica: the edit of KAITO that is "refused"
here is one that scales. An edit of the pods recreates the Workspace, so it never rolls out replica by replica. Only
direct can stop the old pod first.

Written by `make truth`.
"""


def main() -> int:
    """Run the command line, and return 1 if Ready was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--only", default=PROVIDERS, help="providers, separated by commas")
    parser.add_argument("--edits", default="", help="kinds of edits, separated by commas")
    parser.add_argument(
        "--speed", type=float, default=SPEED, help=f"of the simulated operators (default {SPEED:.0f})"
    )
    parser.add_argument(
        "--write", action="store_true", help="also write docs/truth.md, which shows all edits"
    )
    arguments = parser.parse_args()
    if arguments.write and (arguments.only, arguments.edits, arguments.speed) != (PROVIDERS, "", SPEED):
        parser.error("--write needs all providers and edits at the usual speed: leave the other options out")
    providers, edits = (
        arguments.only.split(","),
        arguments.edits.split(",") if arguments.edits else list(EDITS),
    )
    if unknown := [*(set(providers) - set(KINDS)), *(set(edits) - set(EDITS))]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join([*KINDS, *EDITS])}")
    ledgers: dict[tuple[str, str], Ledger] = {}
    failures: list[str] = []
    try:
        with tempfile.TemporaryDirectory(prefix="kubefoundry-truth-") as folder:
            ledgers = asyncio.run(_measure(Path(folder), providers, edits, arguments.speed))
        if arguments.write:
            DOCUMENT.write_text("\n".join([TITLE, HEAD, *map(_row, ledgers, ledgers.values()), ""]))
    except* CannotRun as group:
        failures = [str(error) for error in group.exceptions]
    for failure in failures:
        sys.stderr.write(f"truth: {failure}\n")
    return 0 if not failures and all(map(_is_true, ledgers, ledgers.values())) else 1


def _is_true(key: tuple[str, str], ledger: Ledger) -> bool:
    """Check whether Ready was true. If the old pods stop first, the model stops serving before we can see it."""
    stops_first = key[0] == "kaito" or key[1] == STOPS_FIRST
    return ledger.old == ledger.wrong == 0 and (ledger.none == 0 or stops_first)


async def _measure(
    folder: Path, providers: Sequence[str], edits: Sequence[str], speed: float
) -> dict[tuple[str, str], Ledger]:
    """Return the figures by provider and edit."""
    ledgers: dict[tuple[str, str], Ledger] = {}
    async with _started(folder, providers, speed) as ground:
        print(HEAD, flush=True)
        for provider in providers:
            for number, edit in enumerate(edits):
                if not applies(edit, provider):
                    continue
                model = Watched(ground, provider, f"truth-{provider}-{number}")
                ledger = ledgers[provider, edit] = await _measure_edit(model, edit)
                print(_row((provider, edit), ledger), flush=True)
    return ledgers


def _row(key: tuple[str, str], ledger: Ledger) -> str:
    old, none = (f"{1000 * seconds:.0f}" for seconds in (ledger.old, ledger.none))
    return f"| {' | '.join(key)} | {old} | {none} | {ledger.wrong} of {ledger.waits} |"


async def _measure_edit(model: Watched, edit: str) -> Ledger:
    """Create the model, edit it, delete it, and return the figures of the edit."""
    client, models = model.ground.client, model.ground.models
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": model.namespace}}
    await client.create(NAMESPACES, body, manager=MANAGER)
    await model.create()
    await model.settled()
    model.ledger = Ledger()
    watch = asyncio.create_task(model.watch())
    await EDITS[edit](model)
    await model.settled()
    watch.cancel()
    uid = models.objects[model.key]["metadata"]["uid"]
    await client.delete(MODEL_DEPLOYMENTS, "m", model.namespace, uid=uid)
    await models.until(lambda: model.key not in models.objects)
    return model.ledger


@asynccontextmanager
async def _started(folder: Path, providers: Sequence[str], speed: float) -> AsyncIterator[Ground]:
    """Start a control plane, our processes, the simulated operators and the node. All of them end with the block."""
    say("starting the control plane, our processes and the simulated operators")
    flags = ["--timeout", "10m", *(flag for crd in upstream_crds() for flag in ("--crds", str(crd.file)))]
    if "direct" in providers:
        flags.append("--all-controllers")
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
                upstream = {provider: Sightings() for provider in providers}
                ground = Ground(suite, client, Sightings(), upstream, Node(speed))
                watched = [
                    (MODEL_DEPLOYMENTS, ground.models),
                    (PODS, ground.node),
                    *((KINDS[provider], sink) for provider, sink in upstream.items()),
                ]
                tasks = [group.create_task(reflect(client, kind, sink)) for kind, sink in watched]
                tasks.append(group.create_task(ground.node.run(client)))
                yield ground
                for task in tasks:
                    task.cancel()
        finally:
            suite.stop()


if __name__ == "__main__":
    sys.exit(main())
