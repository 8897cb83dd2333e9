"""Both versions of the API on a real API server: the same object, the same admission, and moves of stored objects."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from kubefoundry_cli.install.storage import API_SERVERS
from kubefoundry_local.child_processes import Process, launch
from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import PROBE, Suite, end
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CRDS, LEASES, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from support.api_versions import NEWEST, create_all, stored_in
from support.command_line import CommandLine
from support.deployments import CPU, GPU, model_deployment
from support.kinds import UPSTREAM
from support.message_commands import command_in
from support.namespaces import new_namespace
from support.proxy import Fault, before
from support.suites import running_suite
from support.waiting import SECONDS, phase, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.apart]

OLD, NEW = names.API_VERSIONS
MANY: Final = 1000
BROKEN: Final = Fault(500, "InternalError", message="broken")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """The suite with provider kaito on a control plane whose CRDs these tests change."""
    with running_suite(tmp_path_factory.mktemp("suite"), "kaito") as made:
        made.start()
        yield made


def kubectl(suite: Suite, command: str, body: Object | None = None) -> Any:
    return suite.plane.kubectl(*command.split(), input=json.dumps(body) if body else None)


def at(version: str, body: Object) -> Object:
    return {**body, "apiVersion": version}


@pytest.mark.parametrize("version", names.API_VERSIONS)
async def test_model_of_each_version_runs_and_reads_the_same(
    suite: Suite, api: Client, namespace: str, version: str
) -> None:
    kubectl(suite, "create -f -", at(version, model_deployment("m", namespace, GPU, provider="kaito")))

    running = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")

    newest = await api.get(NEWEST, "m", namespace)
    assert newest["apiVersion"] == NEW
    assert at(OLD, newest) == await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert newest["status"]["phase"] == running["status"]["phase"] == "Running"


@pytest.mark.parametrize(
    ("version", "warnings"),
    [
        (OLD, [f"Warning: {OLD} ModelDeployment is deprecated; use {NEW}, which has the same fields"]),
        (NEW, []),
    ],
)
def test_only_the_old_version_is_warned_about(suite: Suite, version: str, warnings: list[str]) -> None:
    body = at(version, model_deployment("m", "default", GPU))

    done = kubectl(suite, "create --dry-run=server -f -", body)

    assert done.stderr.splitlines() == warnings


@pytest.mark.parametrize("version", names.API_VERSIONS)
def test_bad_model_is_refused_in_the_same_words(suite: Suite, version: str) -> None:
    spec = {**GPU, "engine": {"type": "vllm", "args": {"model": "another/model"}}}
    body = at(version, model_deployment("m", "default", spec))

    done = suite.plane.kubectl("create", "-f", "-", input=json.dumps(body), check=False)

    assert 'is "another/model" but model.id is "org/model": set only model.id' in done.stderr


async def test_applied_field_is_removed_at_the_other_version(
    suite: Suite, api: Client, namespace: str
) -> None:
    selecting = model_deployment("m", namespace, {**GPU, "nodeSelector": {"pool": "a"}}, provider="kaito")
    kubectl(suite, "apply --server-side -f -", at(OLD, selecting))

    kubectl(
        suite, "apply --server-side -f -", at(NEW, model_deployment("m", namespace, GPU, provider="kaito"))
    )

    live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    applied = [
        entry["apiVersion"] for entry in live["metadata"]["managedFields"] if entry["manager"] == "kubectl"
    ]
    assert "nodeSelector" not in live["spec"]
    assert applied == [NEW]


async def test_serving_models_move_and_move_back_without_a_write(
    suite: Suite, api: Client, namespace: str
) -> None:
    for name in ("a", "b"):
        await api.create(
            MODEL_DEPLOYMENTS, model_deployment(name, namespace, GPU, provider="kaito"), manager="test"
        )
        await until_deployment(api, name, namespace, lambda obj: phase(obj) == "Running")
    before = await upstream_versions(api, namespace)
    kubefoundry = CommandLine(suite.plane.kubeconfig, "default")
    to_newest = f"controller migrate --to {names.NEWEST_VERSION} --force-conflicts"

    shown = await kubefoundry(f"{to_newest} --dry-run")
    after_dry_run = stored_in(suite.plane)
    forth = await kubefoundry(f"{to_newest} --yes")
    in_newest = stored_in(suite.plane)
    examined = await kubefoundry("doctor")
    back = await kubefoundry(f"controller migrate --to {names.VERSION} --yes --force-conflicts")

    assert "stored in v1alpha1 would move to v1beta1; nothing was written" in shown.err
    assert (shown.code, after_dry_run) == (0, {OLD})
    assert (forth.code, back.code) == (0, 0), (forth.err, back.err)
    assert "objects are stored in v1beta1" in forth.err
    assert (in_newest, stored_in(suite.plane)) == ({NEW}, {OLD})
    assert "controller migrate" not in examined.out
    assert await upstream_versions(api, namespace) == before


async def test_interrupted_move_is_named_and_completed(fresh: Suite, api: Client) -> None:
    """The CRD stores another version, and nobody has moved what is stored."""
    namespace = await new_namespace(api)
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU), manager="test")
    flags = [{"op": "replace", "path": f"/spec/versions/{at}/storage", "value": at == 1} for at in (0, 1)]
    await api.json_patch(CRDS, MODEL_DEPLOYMENTS.crd, None, flags, manager="test")
    kubefoundry = CommandLine(fresh.plane.kubeconfig, "default")
    examined = await kubefoundry("doctor")

    completed = await kubefoundry("controller migrate --yes")
    again = await kubefoundry("controller migrate --yes")

    assert (
        "objects that are stored in v1alpha1, not in v1beta1; kubefoundry controller migrate" in examined.out
    )
    assert (completed.code, again.code) == (0, 0), (completed.err, again.err)
    assert "ModelDeployment: all objects are stored in v1beta1; nothing to do" in again.err
    assert (await api.get(CRDS, MODEL_DEPLOYMENTS.crd))["status"]["storedVersions"] == ["v1beta1"]


async def test_failed_move_names_the_model_and_is_repeated(fresh: Suite, api: Client, tmp_path: Path) -> None:
    namespace = await new_namespace(api)
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU), manager="test")
    to_newest = f"controller migrate --to {names.NEWEST_VERSION} --yes --force-conflicts"
    async with before(fresh.plane.kubeconfig, tmp_path) as (proxy, kubeconfig):
        proxy.rule = lambda request: BROKEN if request.path.endswith("/m/status") else None
        failed = await CommandLine(kubeconfig, "default")(to_newest)
    command = command_in(failed.err, "cli/install/storage: kubefoundry controller migrate")

    repeated = await CommandLine(fresh.plane.kubeconfig, "default")(" ".join([*command[1:3], "--yes"]))

    assert f"cannot move ModelDeployment 'm' in namespace {namespace}" in failed.err
    assert (failed.code, repeated.code) == (1, 0), repeated.err
    assert stored_in(fresh.plane) == {NEW}


async def test_move_waits_for_other_api_servers(fresh: Suite, api: Client, tmp_path: Path) -> None:
    namespace = await new_namespace(api)
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU), manager="test")
    # API servers on one machine share a Lease, and Kubernetes 1.26 labels it in another way.
    for name in ("b", "c"):
        await api.create(LEASES, lease_of_an_api_server(name), manager="test")
    async with second_api_server(fresh.plane, tmp_path) as other:
        moved = await CommandLine(fresh.plane.kubeconfig, "default")(
            f"controller migrate --to {names.NEWEST_VERSION} --yes --force-conflicts"
        )
        await other.create(MODEL_DEPLOYMENTS, model_deployment("n", namespace, CPU), manager="test")

    assert moved.code == 0, moved.err
    assert "the API server that answers stores in v1beta1; waiting 10 s for others, which" in moved.err
    assert stored_in(fresh.plane, namespace) == {NEW}


def lease_of_an_api_server(name: str) -> Object:
    label, value = API_SERVERS["labelSelector"].split("=")
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": f"apiserver-{name}", "namespace": "kube-system", "labels": {label: value}},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 3600, "renewTime": now},
    }


@asynccontextmanager
async def second_api_server(plane: ControlPlane, folder: Path) -> AsyncIterator[Client]:
    """Run another API server on the etcd of the plane, and yield an administrator's client to it."""
    port = free_port()
    process = start_api_server(plane.pids["kube-apiserver"], port, folder)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(plane.kubeconfig.read_text().replace(plane.server, f"https://127.0.0.1:{port}"))
    try:
        async with Client(credentials.from_kubeconfig(str(kubeconfig)), user_agent="test") as client:
            await until_served(client)
            yield client
    finally:
        end(process)


def start_api_server(pid: int, port: int, folder: Path) -> Process:
    """Start an API server as that process was started, at another port."""
    running = Path(f"/proc/{pid}")
    _, *flags = (running / "cmdline").read_text().split("\0")[:-1]
    # The program runs the component whose name it has.
    program = folder / "kube-apiserver"
    program.symlink_to((running / "exe").readlink())
    changes = [f"--secure-port={port}", f"--audit-log-path={folder / 'audit.log'}"]
    return launch([str(program), *flags, *changes], os.environ, folder / "log")


async def until_served(client: Client) -> None:
    """Wait until the API server that has just started serves our kind."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await client.list(MODEL_DEPLOYMENTS)
                return
            except (ApiError, Unreachable):
                await asyncio.sleep(PROBE)


async def test_thousand_models_move_under_edits(fresh: Suite, api: Client) -> None:
    namespace = await new_namespace(api)
    bodies = [model_deployment(f"m{number}", namespace, CPU) for number in range(MANY)]
    await create_all(api, bodies)
    before = await read(api, namespace)
    kubefoundry = CommandLine(fresh.plane.kubeconfig, "default")
    start = time.monotonic()
    moves = asyncio.create_task(
        kubefoundry(f"controller migrate --to {names.NEWEST_VERSION} --yes --force-conflicts")
    )

    edited: dict[str, int] = {}
    for number in itertools.cycle(range(MANY)):
        if moves.done():
            break
        name, replicas = f"m{number}", len(edited) % 7 + 2
        scale = [{"op": "add", "path": "/spec/scaling", "value": {"replicas": replicas}}]
        await api.json_patch(MODEL_DEPLOYMENTS, name, namespace, scale, manager="editor")
        edited[name] = replicas

    moved = await moves
    seconds = time.monotonic() - start
    after = await read(api, namespace)
    print(
        f"{MANY} models moved in {seconds:.1f} s, {len(edited)} of them edited, {len(before.keys() - after)} lost"
    )
    assert (moved.code, stored_in(fresh.plane, namespace)) == (0, {NEW}), moved.err
    assert {name: after[name]["spec"]["scaling"]["replicas"] for name in edited} == edited
    assert {name: body for name, body in after.items() if name not in edited} == {
        name: body for name, body in before.items() if name not in edited
    }


async def read(api: Client, namespace: str) -> dict[str, Object]:
    """Return all models at the old version by name, without their resource versions."""
    objects, _ = await api.list(MODEL_DEPLOYMENTS, namespace)
    for obj in objects:
        del obj["metadata"]["resourceVersion"]
    return {obj["metadata"]["name"]: obj for obj in objects}


async def upstream_versions(api: Client, namespace: str) -> dict[str, str]:
    """Return the resource version of each Workspace by name."""
    objects, _ = await api.list(UPSTREAM["kaito"], namespace)
    return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in objects}
