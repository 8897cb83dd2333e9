"""`PYTHONPATH=dev python -m benchmarks.event_sources`: kopf and our reflector, side by side.

The contract makes kopf the framework for watching unless it misses the aims for start, memory or bursts. This
measurement decided it. Each source runs alone, in a process of its own, and fills a store from the same API server.
The result is written to docs/event-sources.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

OBJECTS: Final = 1000
DELETED: Final = 20
ROUNDS: Final = 3
GAP: Final = 40.0
"""Seconds after the start of the outage in which deletions have to be reported. The outage lasts about ten."""

SOURCES: Final = ("kopf", "reflector")
ROWS: Final = {
    "imports_s": "imports, s",
    "imports_mib": "RSS after imports, MiB",
    "listed_s": "process start → all objects known, s",
    "full_mib": "RSS with them, MiB over imports",
    "changes_s": "one change of each object: until all are seen, s",
    "changes_cpu_s": "the same: CPU s of the process",
    "deletions": f"of {DELETED} deletions while the source was cut off: reported",
}


def main() -> int:
    """Measure all sources, or one source as a child process."""
    if len(sys.argv) == 4 and sys.argv[1] == "--child":
        asyncio.run(_child(sys.argv[2], sys.argv[3]))
        return 0
    text = asyncio.run(_measure())
    print(text)
    (Path(__file__).parents[2] / "docs" / "event-sources.md").write_text(text)
    return 0


async def _measure() -> str:
    from benchmarks.rig import GPU, deployment
    from kubefoundry_local.control_plane import control_plane
    from kubefoundry_local.suite import Suite
    from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
    from kubefoundry_sdk._cluster import credentials
    from kubefoundry_sdk._cluster.client import Client

    figures: dict[str, list[dict[str, float]]] = {source: [] for source in SOURCES}
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder) / "plane") as plane:
        Suite(plane, Path(folder) / "suite").install_ground()
        kubeconfig = str(plane.kubeconfig)
        async with Client(credentials.from_kubeconfig(kubeconfig), user_agent="benchmarks") as client:
            for number in range(OBJECTS):
                body = deployment(f"m{number}", "default", GPU)
                await client.create(MODEL_DEPLOYMENTS, body, manager="benchmarks")

            async def change(mark: str) -> None:
                body = {"apiVersion": "kubefoundry.ai/v1alpha1", "kind": "ModelDeployment"}
                for number in range(OBJECTS):
                    meta = {"name": f"m{number}", "namespace": "default", "labels": {"mark": mark}}
                    await client.apply(MODEL_DEPLOYMENTS, {**body, "metadata": meta}, manager="benchmarks")

            async def cut_off(pid: int) -> None:
                """Delete models while the source is stopped and the API server restarts: no watch shows it."""
                os.kill(pid, signal.SIGSTOP)
                await asyncio.to_thread(plane.restart_api_server)
                await asyncio.to_thread(
                    plane.kubectl, "delete", "modeldeployments", "-n", "default", *deleted
                )
                os.kill(pid, signal.SIGCONT)

            deleted = [f"m{number}" for number in range(DELETED)]
            for turn in range(ROUNDS):
                for source in SOURCES:
                    marked = partial(change, f"{turn}-{source}")
                    figures[source].append(await _run(source, kubeconfig, marked, cut_off))
                    for name in deleted:
                        body = deployment(name, "default", GPU)
                        await client.create(MODEL_DEPLOYMENTS, body, manager="benchmarks")
    return _table(figures)


async def _run(
    source: str,
    kubeconfig: str,
    change: Callable[[], Awaitable[None]],
    cut_off: Callable[[int], Awaitable[None]],
) -> dict[str, float]:
    """Run a source in a process, and return its figures. The process prints them in three lines."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.event_sources", "--child", source, kubeconfig,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "STARTED": str(time.time())},
    )  # fmt: skip
    assert process.stdout is not None
    figures: dict[str, float] = json.loads(await process.stdout.readline())
    await change()
    figures |= json.loads(await process.stdout.readline())
    await cut_off(process.pid)
    figures |= json.loads(await process.stdout.readline())
    return figures


def _table(figures: dict[str, list[dict[str, float]]]) -> str:
    """Return the document with the medians of all runs."""
    lines = [
        "# kopf and the reflector as event source",
        "",
        f"{OBJECTS} ModelDeployments, medians of {ROUNDS} runs, in turn, on one control plane. Made by",
        "`PYTHONPATH=dev python -m benchmarks.event_sources`. `docs/architecture.md` says why the reflector is used.",
        "",
        "| | kopf | reflector |",
        "|---|---|---|",
    ]
    for key, title in ROWS.items():
        cells = [f"{sorted(run[key] for run in figures[source])[ROUNDS // 2]:.4g}" for source in SOURCES]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


async def _child(source: str, kubeconfig: str) -> None:
    """Fill a store from the source, and print the figures of the start, of the changes and of the deletions."""
    started = float(os.environ["STARTED"])
    from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
    from kubefoundry_sdk._cluster import credentials
    from kubefoundry_sdk._cluster.client import Client
    from kubefoundry_sdk._cluster.reflector import reflect
    from kubefoundry_sdk._runtime.store import Store

    if source == "kopf":
        import kopf  # noqa: F401 (only the cost of the import counts here)
    account = credentials.from_kubeconfig(kubeconfig)
    imports = {"imports_s": time.time() - started, "imports_mib": _resident()}
    store = Store()
    versions: set[str] = set()
    waiting: list[tuple[int, asyncio.Event]] = []
    removed: set[object] = set()
    all_removed = asyncio.Event()

    def notify(key: object, obj: dict[str, Any] | None) -> None:
        if obj is None:
            removed.add(key)
            if len(removed) == DELETED:
                all_removed.set()
            return
        versions.add(f"{key}{obj['metadata'].get('resourceVersion')}")
        for count, event in waiting:
            if len(versions) >= count:
                event.set()

    store.subscribe(notify)
    all_listed, all_changed = asyncio.Event(), asyncio.Event()
    waiting += [(OBJECTS, all_listed), (2 * OBJECTS, all_changed)]
    async with Client(account, user_agent="benchmarks") as client:
        running = asyncio.ensure_future(
            _kopf(kubeconfig, store) if source == "kopf" else reflect(client, MODEL_DEPLOYMENTS, store)
        )
        await all_listed.wait()
        listed = {"listed_s": time.time() - started, "full_mib": _resident() - imports["imports_mib"]}
        print(json.dumps({**imports, **listed}), flush=True)
        begun, cpu = time.time(), time.process_time()
        await all_changed.wait()
        spent = {"changes_s": time.time() - begun, "changes_cpu_s": time.process_time() - cpu}
        print(json.dumps(spent), flush=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(all_removed.wait(), GAP)
        print(json.dumps({"deletions": len(removed)}), flush=True)
        running.cancel()
    # kopf's threads would delay a normal exit.
    os._exit(0)


async def _kopf(kubeconfig: str, store: Any) -> None:
    """Run kopf with the least work: events only, without state and writes (no on.create, no index, no timers)."""
    import kopf

    registry = kopf.OperatorRegistry()
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.watching.chunk_size = 500
    settings.queueing.idle_timeout = 0.05
    os.environ["KUBECONFIG"] = kubeconfig

    async def event(event: Any, **_: Any) -> None:
        obj = json.loads(json.dumps(dict(event["object"])))
        if event["type"] == "DELETED":
            store.remove(obj)
        else:
            store.put(obj)

    kopf.on.event("kubefoundry.ai", "v1alpha1", "modeldeployments", registry=registry)(event)
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)
    await kopf.operator(registry=registry, settings=settings, clusterwide=True)


def _resident() -> float:
    """Return the resident memory of this process in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS in /proc/self/status")


if __name__ == "__main__":
    sys.exit(main())
