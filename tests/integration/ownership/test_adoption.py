"""Models are ejected and imported while they serve, and neither changes the upstream object."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web

from kubefoundry_cli import edit
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.command_line import CommandLine, Done
from support.deployments import GPU
from support.edits import nothing_more_is_done, running
from support.finalizers import HELD, let_go
from support.kinds import UPSTREAM
from support.proxy import Fault, before
from support.restarts import frozen, stopped
from support.waiting import serves, until, until_deployment

pytestmark = pytest.mark.integration


@pytest.fixture
def kubefoundry(suite: Suite, namespace: str) -> CommandLine:
    return CommandLine(suite.plane.kubeconfig, namespace)


def marks(obj: Object) -> set[str]:
    """What makes an object ours: owner, labels, annotations, field manager."""
    meta = obj["metadata"]
    found = {*(meta.get("labels") or {}), *(meta.get("annotations") or {})}
    managers = {entry["manager"] for entry in meta.get("managedFields") or () if "manager" in entry}
    owners = {one["kind"] for one in meta.get("ownerReferences") or ()}
    return {key for key in found if key.startswith(names.PREFIX)} | {
        one for one in managers | owners if one.endswith("-provider") or one == names.MODEL_DEPLOYMENT
    }


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_eject_then_import_changes_nothing(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    spec = {**GPU, "engine": {**GPU["engine"], "contextLength": 4096}}
    await running(api, namespace, spec, provider)
    before = await api.get(kind, "m", namespace)
    log = AuditLog(suite)

    refused = await kubefoundry("eject", "m")
    ejected = await kubefoundry("eject", "m", "--yes")

    assert (refused.code, "add --yes" in refused.err) == (2, True), refused
    assert ejected.code == 0, ejected.err
    assert (await api.list(MODEL_DEPLOYMENTS, namespace))[0] == []
    left = await api.get(kind, "m", namespace)
    assert marks(left) == set()
    assert (left["metadata"]["uid"], left["metadata"]["generation"]) == (
        before["metadata"]["uid"],
        before["metadata"]["generation"],
    )

    shown = await kubefoundry("import", f"{kind.kind}/m", "--dry-run")
    imported = await kubefoundry("import", f"{kind.kind}/m", "--yes")
    again = await kubefoundry("import", f"{kind.kind}/m", "--yes")

    assert (shown.code, "kind: ModelDeployment" in shown.out) == (0, True), shown
    assert imported.code == 0, imported.err
    assert (again.code, "belongs to ModelDeployment 'm' already" in again.err) == (1, True), again
    served = await until_deployment(api, "m", namespace, serves)
    assert served["spec"]["engine"]["contextLength"] == 4096
    assert names.PAUSED_ANNOTATION not in (served["metadata"].get("annotations") or {})
    back = await api.get(kind, "m", namespace)
    assert (back["metadata"]["uid"], back["metadata"]["generation"]) == (
        before["metadata"]["uid"],
        before["metadata"]["generation"],
    )
    assert log.writes(f"provider-{provider}", namespace, kind.plural) == []
    # it is the provider's like any other: looked at it writes nothing, and an edit reaches it
    await nothing_more_is_done(suite, api, namespace, provider)
    edit = [{"op": "remove", "path": "/spec/engine/contextLength"}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, edit, manager="test")
    reached = names.APPLIED_GENERATION_ANNOTATION
    edited = await until(
        api,
        kind,
        "m",
        namespace,
        lambda obj: obj is not None and obj["metadata"]["annotations"].get(reached) == "2",
    )
    assert edited is not None
    assert "4096" not in str(edited.get("spec"))


async def test_import_refuses_an_object_with_other_values(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    kind = UPSTREAM["dynamo"]
    await running(api, namespace, GPU, "dynamo")
    assert (await kubefoundry("eject", "m", "--yes")).code == 0
    edit = [{"op": "replace", "path": "/spec/services/VllmWorker/componentType", "value": "planner"}]
    changed = await api.json_patch(kind, "m", namespace, edit, manager="me")

    done = await kubefoundry("import", f"{kind.plural}/m", "--yes")

    assert (done.code, "is not adopted: 1 value would change" in done.err) == (1, True), done
    assert "VllmWorker.componentType\n  - planner\n  + worker" in done.err
    assert (await api.list(MODEL_DEPLOYMENTS, namespace))[0] == []
    there = await api.get(kind, "m", namespace)
    assert there["metadata"]["generation"] == changed["metadata"]["generation"]
    assert marks(there) == set()


async def test_ejected_while_its_operator_writes(
    kubefoundry: CommandLine, api: Client, namespace: str
) -> None:
    kind = UPSTREAM["kuberay"]
    await running(api, namespace, GPU, "kuberay")
    before = await api.get(kind, "m", namespace)
    over = asyncio.Event()

    async def writing() -> None:
        count = 0
        while not over.is_set():
            count += 1
            touch = [{"op": "add", "path": "/metadata/annotations/example.com~1touched", "value": str(count)}]
            await api.json_patch(kind, "m", namespace, touch, manager="operator")

    writer = asyncio.create_task(writing())
    try:
        done = await kubefoundry("eject", "m", "--yes")
    finally:
        over.set()
        await writer

    left = await api.get(kind, "m", namespace)
    if done.code == 0:
        assert (await api.list(MODEL_DEPLOYMENTS, namespace))[0] == []
        assert marks(left) == set()
    else:
        # nothing is half done: it serves, and the same command goes on
        assert (done.code, "eject it again" in done.err) == (3, True), done
        assert (await kubefoundry("eject", "m", "--yes")).code == 0
        left = await api.get(kind, "m", namespace)
    assert left["metadata"]["uid"] == before["metadata"]["uid"]
    assert not left["metadata"].get("deletionTimestamp")


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_eject_waits_for_the_report_of_the_pause(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    """A provider that has not seen the pause would put owner and marks back, and the object would be collected."""
    kind = UPSTREAM[provider]
    await running(api, namespace, GPU, provider)
    before = await api.get(kind, "m", namespace)

    with frozen(suite.components[provider]):
        early = await kubefoundry("eject", "m", "--yes", "--timeout", "1s")
        kept = await api.get(kind, "m", namespace)
    done = await kubefoundry("eject", "m", "--yes")

    assert (early.code, f"provider {provider} has not reported" in early.err) == (6, True), early
    assert (marks(kept), kept["metadata"]["ownerReferences"]) == (
        marks(before),
        before["metadata"]["ownerReferences"],
    )
    assert done.code == 0, done
    left = await api.get(kind, "m", namespace)
    assert (marks(left), left["metadata"]["uid"]) == (set(), before["metadata"]["uid"])
    assert "deletionTimestamp" not in left["metadata"]


async def test_eject_of_a_model_that_is_deleted_meanwhile_is_too_late(
    suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    await running(api, namespace, GPU, "kuberay")
    model = f"/namespaces/{namespace}/{MODEL_DEPLOYMENTS.plural}/m"

    def delete_paused(request: web.Request) -> None:
        if request.method == "PATCH" and request.path.endswith(model):
            suite.plane.kubectl("delete", "modeldeployment", "m", "-n", namespace, "--wait=false")

    async with before(suite.plane.kubeconfig, tmp_path / "proxy") as (proxy, kubeconfig):
        proxy.done = delete_paused
        done = await CommandLine(kubeconfig, namespace)("eject", "m", "--yes")

    assert (done.code, "too late to eject it" in done.err) == (1, True), done
    assert "eject it again" not in done.err


async def test_eject_waits_for_no_provider_that_is_not_registered(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str
) -> None:
    kind = UPSTREAM["dynamo"]
    await running(api, namespace, GPU, "dynamo")

    with stopped(suite.components["dynamo"]):
        suite.plane.kubectl("delete", "inferenceproviderconfig", "dynamo")
        done = await kubefoundry("eject", "m", "--yes")

    assert done.code == 0, done
    assert marks(await api.get(kind, "m", namespace)) == set()


@pytest.mark.parametrize(
    ("conflicts", "adopted"),
    [
        pytest.param({1}, True, id="before its marks"),
        pytest.param({2, 3}, True, id="between marks and field ownership"),
        pytest.param({*range(2, 2 + edit.TRIES)}, False, id="again and again"),
    ],
)
async def test_adopted_while_its_operator_writes(
    kubefoundry: CommandLine,
    suite: Suite,
    api: Client,
    namespace: str,
    tmp_path: Path,
    conflicts: set[int],
    adopted: bool,
) -> None:
    """The answers of an API server to whom somebody else's write has come first."""
    kind = UPSTREAM["kuberay"]
    await running(api, namespace, GPU, "kuberay")
    assert (await kubefoundry("eject", "m", "--yes")).code == 0
    writes = itertools.count(1)

    def rule(request: web.Request) -> Fault | None:
        patch = request.method == "PATCH" and "json-patch" in request.headers["Content-Type"]
        if patch and f"/{kind.plural}/" in request.path and next(writes) in conflicts:
            return Fault(409, "Conflict")
        return None

    async with before(suite.plane.kubeconfig, tmp_path / "proxy") as (proxy, kubeconfig):
        proxy.rule = rule
        done = await CommandLine(kubeconfig, namespace)("import", f"{kind.kind}/m", "--yes")

    there = await api.get(kind, "m", namespace)
    assert proxy.answered["409"] == len(conflicts)
    assert (done.code == 0) == adopted, done
    if adopted:
        assert {names.MODEL_DEPLOYMENT, "kuberay-provider"} <= marks(there)
    else:
        # nothing is half done
        assert (marks(there), (await api.list(MODEL_DEPLOYMENTS, namespace))[0]) == (set(), [])
        assert (await kubefoundry("import", f"{kind.kind}/m", "--yes")).code == 0


async def test_failed_import_ends_when_nothing_of_it_is_left(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    """The deletion of its ModelDeployment takes as long as the garbage collector needs for `Orphan`."""
    kind = UPSTREAM["kuberay"]
    await running(api, namespace, GPU, "kuberay")
    assert (await kubefoundry("eject", "m", "--yes")).code == 0
    models = f"/namespaces/{namespace}/{MODEL_DEPLOYMENTS.plural}"
    waits = asyncio.Event()

    def rule(request: web.Request) -> Fault | None:
        if request.query.get("watch") and request.path.endswith(models):
            waits.set()
        patch = request.method == "PATCH" and "json-patch" in request.headers["Content-Type"]
        return Fault(403, "Forbidden") if patch and not proxy.answered["403"] else None

    def hold_created(request: web.Request) -> None:
        if request.method == "POST" and request.path.endswith(models):
            finalizers = json.dumps({"metadata": {"finalizers": [HELD]}})
            suite.plane.kubectl("patch", "md", "m", "-n", namespace, "--type=merge", "-p", finalizers)

    async with before(suite.plane.kubeconfig, tmp_path / "proxy") as (proxy, kubeconfig):
        proxy.rule, proxy.done = rule, hold_created
        importing = asyncio.create_task(
            CommandLine(kubeconfig, namespace)("import", f"{kind.kind}/m", "--yes")
        )
        waiting = asyncio.create_task(waits.wait())
        await asyncio.wait((importing, waiting), return_when=asyncio.FIRST_COMPLETED)
        assert not importing.done(), importing.result()
        await let_go(api, MODEL_DEPLOYMENTS, namespace)
        done = await importing

    assert (done.code, "cannot adopt RayService 'm'" in done.err) == (5, True), done
    assert (await api.list(MODEL_DEPLOYMENTS, namespace))[0] == []
    assert (await kubefoundry("import", f"{kind.kind}/m", "--yes")).code == 0


async def imported(kubeconfig: Path, namespace: str, name: str = "m") -> Done:
    """Import a RayService."""
    return await CommandLine(kubeconfig, namespace)("import", f"rayservice/{name}", "--yes")


async def test_object_is_not_marked_for_a_deleted_model(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    """The garbage collector deletes what a deleted ModelDeployment owns."""
    kind = UPSTREAM["kuberay"]
    await running(api, namespace, GPU, "kuberay")
    assert (await kubefoundry("eject", "m", "--yes")).code == 0
    before_it = await api.get(kind, "m", namespace)

    def delete_created(request: web.Request) -> None:
        if request.method == "POST" and request.path.endswith(f"/{MODEL_DEPLOYMENTS.plural}"):
            suite.plane.kubectl("delete", "md", "m", "-n", namespace)

    async with before(suite.plane.kubeconfig, tmp_path / "proxy") as (proxy, kubeconfig):
        proxy.done = delete_created
        done = await imported(kubeconfig, namespace)

    assert (done.code, "'m' was deleted meanwhile: RayService 'm' is not adopted" in done.err) == (1, True), (
        done
    )
    there = await api.get(kind, "m", namespace)
    assert (there["metadata"]["uid"], marks(there)) == (before_it["metadata"]["uid"], set())
    assert (await imported(suite.plane.kubeconfig, namespace)).code == 0


async def test_second_import_at_once_has_to_wait(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    """To delete the ModelDeployment of the other import would delete the object."""
    await running(api, namespace, GPU, "kuberay")
    assert (await kubefoundry("eject", "m", "--yes")).code == 0
    program = [str(Path(sys.executable).with_name("kubefoundry")), "import", "rayservice/m", "--yes"]
    cluster = ["--kubeconfig", str(suite.plane.kubeconfig), "-n", namespace]
    second: list[subprocess.CompletedProcess[str]] = []

    def import_too(request: web.Request) -> None:
        if request.method == "POST" and request.path.endswith(f"/{MODEL_DEPLOYMENTS.plural}"):
            second.append(subprocess.run([*program, *cluster], capture_output=True, text=True, check=False))

    async with before(suite.plane.kubeconfig, tmp_path / "proxy") as (proxy, kubeconfig):
        proxy.done = import_too
        done = await imported(kubeconfig, namespace)

    [refused] = second
    assert "somebody else may be importing RayService 'm'" in refused.stderr, refused
    assert (refused.returncode, done.code) == (1, 0), done.err
    await until_deployment(api, "m", namespace, serves)


async def test_model_of_an_unfinished_import_is_ejected(
    kubefoundry: CommandLine, suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    """An import that ended before it resumed the model: the model owns the object, and is paused."""
    kind = UPSTREAM["kuberay"]
    await running(api, namespace, GPU, "kuberay")
    assert (await kubefoundry("eject", "m", "--yes")).code == 0

    def rule(request: web.Request) -> Fault | None:
        resumes = request.method == "PATCH" and request.path.endswith(f"/{MODEL_DEPLOYMENTS.plural}/m")
        return Fault(403, "Forbidden") if resumes else None

    async with before(suite.plane.kubeconfig, tmp_path / "proxy") as (proxy, kubeconfig):
        proxy.rule = rule
        done = await imported(kubeconfig, namespace)
    assert (done.code, "which is adopted and paused" in done.err) == (5, True), done

    ejected = await kubefoundry("eject", "m", "--yes")

    assert ejected.code == 0, ejected.err
    left = await api.get(kind, "m", namespace)
    assert (marks(left), left["metadata"].get("deletionTimestamp")) == (set(), None)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("eject", "none", "--yes"), 1, "not found", id="no such model"),
        pytest.param(
            ("import", "rayservice/none", "--yes"), 1, "not found in namespace", id="no such object"
        ),
        pytest.param(("import", "m", "--yes"), 2, "write KIND/NAME", id="no kind"),
        pytest.param(("import", "pod/m", "--yes"), 2, "known: Deployment (deploy),", id="another kind"),
        pytest.param(
            ("import", "rayservice/none", "--as", "ann"),
            5,
            'User "ann" cannot get',
            id="without the right to",
        ),
    ],
)
async def test_import_refuses_object_that_cannot_be_adopted(
    kubefoundry: CommandLine, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = await kubefoundry(*arguments)

    assert (done.code, said in done.err) == (code, True), done
