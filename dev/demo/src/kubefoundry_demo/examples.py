"""Apply the examples of this checkout to a running suite, follow them until they run, and delete them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final

import yaml
from rich.console import Console

from kubefoundry_demo.table import display
from kubefoundry_local.control_plane import ROOT, CannotRun, ControlPlane
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.reflector import reflect
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._runtime.store import Key, Store

FOLDER: Final = ROOT / "examples"
NAMESPACE: Final = "models"
PATIENCE: Final = 180.0
"""Longest wait for all examples to run, in seconds; the slowest takes ten."""

OF_EVERY_NAMESPACE: Final = frozenset({"configmap/kube-root-ca.crt", "serviceaccount/default"})
"""Objects that Kubernetes itself creates in a namespace."""


def names() -> list[str]:
    """Return the names of the ModelDeployments in the valid examples."""
    return [yaml.safe_load(file.read_text())["metadata"]["name"] for file in sorted(FOLDER.glob("*.yaml"))]


def bad() -> list[Path]:
    """Return the files of the invalid examples."""
    return sorted((FOLDER / "bad").glob("*.yaml"))


async def run(plane: ControlPlane, console: Console, started: float) -> None:
    """Apply the valid examples, and show them until all run. Raises CannotRun if that takes too long."""
    plane.kubectl("create", "namespace", NAMESPACE)
    waiting = set(names())
    store = Store()
    all_run = asyncio.Event()
    async with Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent="demo") as client:
        with display(console, started) as show:

            def changed(key: Key, obj: Object | None) -> None:
                show([*store.objects()])
                if obj and obj.get("status", {}).get("phase") == "Running":
                    waiting.discard(key[1])
                if not waiting:
                    all_run.set()

            store.subscribe(changed)
            watching = asyncio.create_task(reflect(client, MODEL_DEPLOYMENTS, store, namespace=NAMESPACE))
            try:
                await asyncio.to_thread(plane.kubectl, "apply", "-n", NAMESPACE, "-f", str(FOLDER))
                async with asyncio.timeout(PATIENCE):
                    await all_run.wait()
            except TimeoutError:
                late = ", ".join(sorted(waiting))
                raise CannotRun(f"after {PATIENCE:.0f} s these do not run: {late}") from None
            finally:
                watching.cancel()


def refusal(plane: ControlPlane, file: Path) -> str:
    """Return the API server's message about an invalid example. Raises CannotRun if it is accepted."""
    result = plane.kubectl("apply", "-n", NAMESPACE, "-f", str(file), check=False)
    if result.returncode == 0:
        raise CannotRun(f"{file.name} was not refused")
    return result.stderr.strip()


def deployment(plane: ControlPlane, name: str) -> Object:
    """Read a ModelDeployment. Raises CannotRun."""
    return _get(plane, "modeldeployments", name)


def rendered(plane: ControlPlane, deployment: Object) -> Object:
    """Return the upstream object of a ModelDeployment as applied, without the upstream operator's additions.

    Raises:
        CannotRun: A provider did not apply it.
    """
    provider = deployment["status"]["provider"]
    group, _, version = provider["resourceAPIVersion"].rpartition("/")
    live = _get(plane, f"{provider['resourceKind']}.{version}.{group}", provider["resourceName"])
    record = manifest.applied(live)
    if record is None:
        raise CannotRun(
            f"{provider['resourceKind']} {provider['resourceName']} was not applied by a provider"
        )
    return record.manifest


def remove(plane: ControlPlane) -> list[str]:
    """Delete all ModelDeployments, and wait until their objects are gone.

    Returns:
        The remaining objects of the namespace, of all kinds, without Events and the objects of every namespace.
    """
    plane.kubectl("delete", "modeldeployments", "--all", "-n", NAMESPACE, "--timeout=180s")
    # Children of upstream objects: the garbage collector deletes them soon.
    children = _left(plane)
    if children:
        plane.kubectl("wait", "--for=delete", *children, "-n", NAMESPACE, "--timeout=180s", check=False)
    return _left(plane)


def _left(plane: ControlPlane) -> list[str]:
    kinds = plane.kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name").stdout.split()
    listed = ",".join(kind for kind in kinds if not kind.startswith("events"))
    objects = plane.kubectl("get", listed, "-n", NAMESPACE, "-o", "name", "--ignore-not-found").stdout.split()
    return sorted(set(objects) - OF_EVERY_NAMESPACE)


def _get(plane: ControlPlane, kind: str, name: str) -> Object:
    obj: Object = json.loads(plane.kubectl("get", kind, name, "-n", NAMESPACE, "-o", "json").stdout)
    return obj
