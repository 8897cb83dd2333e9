"""Each command in an error of the command line or the page runs as printed and helps."""

from __future__ import annotations

import asyncio
import copy
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml
from aiohttp import ClientSession, CookieJar, web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner

from kubefoundry_cli.hint import name_namespaces
from kubefoundry_dashboard.access import Local
from kubefoundry_dashboard.application import make
from kubefoundry_dashboard.create import Draft
from kubefoundry_dashboard.main import command as dashboard
from kubefoundry_llamastack.coexistence import find_conflict
from kubefoundry_llamastack.installed_schema import drops_our_fields
from kubefoundry_llamastack.observe import containers, sidecars
from kubefoundry_llamastack.observe.containers import ContainerRole
from kubefoundry_llamastack.reconcile import read
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CRDS, MODEL_DEPLOYMENTS, PODS, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support import pods
from support.command_line import Running
from support.deployments import GPU, model_deployment
from support.edits import running
from support.llamastack import GUARD, container, llsd, pod_status
from support.message_commands import ROOT, SITES, command_in
from support.proxy import Fault, before
from support.reader import Reader
from support.registrations import register, unregister
from support.restarts import frozen
from support.upstream import STANDINS
from support.waiting import SECONDS, reason, until, until_deployment

pytestmark = pytest.mark.integration

BROKEN: Final = Fault(500, "InternalError", message="broken")


@pytest.fixture
async def reader(suite: Suite, api: Client, namespace: str, tmp_path: Path) -> Reader:
    return Reader(suite.plane, api, namespace, tmp_path, suite.plane.kubeconfig)


async def test_eject_that_failed_is_resumed(reader: Reader) -> None:
    await running(reader.api, reader.namespace, GPU, "kuberay")
    async with before(reader.kubeconfig, reader.folder / "proxy") as (proxy, kubeconfig):
        reader.kubeconfig = kubeconfig
        proxy.rule = lambda request: (
            BROKEN if request.method == "PATCH" and "rayservices" in request.path else None
        )
        message = await reader.says("eject", "m", "--yes")
        proxy.rule = lambda request: None
        done = await reader.follow(message, "cli/ejection: kubefoundry resume {}")

    assert done.code == 0, (message, done)
    obj = await reader.api.get(MODEL_DEPLOYMENTS, "m", reader.namespace)
    assert names.PAUSED_ANNOTATION not in (obj["metadata"].get("annotations") or {})


async def test_eject_that_timed_out_names_the_process(reader: Reader, suite: Suite) -> None:
    await running(reader.api, reader.namespace, GPU, "kuberay")
    with frozen(suite.components["kuberay"]):
        message = await reader.says("eject", "m", "--yes", "--timeout", "1s")
        done = await reader.follow(message, "cli/ejection: kubefoundry controller status")
    again = await reader.follow(message, "cli/ejection: kubefoundry resume {}")

    assert "kuberay" in done.out, (message, done)
    assert again.code == 0, (message, again)


async def test_import_that_failed_is_removed(reader: Reader) -> None:
    await running(reader.api, reader.namespace, GPU, "kuberay")
    await reader.says("eject", "m", "--yes")

    def rule(request: web.Request) -> Fault | None:
        marks = request.method == "PATCH" and "rayservices" in request.path
        marks = marks and "json-patch" in request.headers["Content-Type"]
        return BROKEN if marks or request.method == "DELETE" else None

    async with before(reader.kubeconfig, reader.folder / "proxy") as (proxy, kubeconfig):
        reader.kubeconfig = kubeconfig
        proxy.rule = rule
        message = await reader.says("import", "rayservice/m", "--yes")
        proxy.rule = lambda request: None
        done = await reader.follow(
            message, "cli/commands/adopt: kubectl delete modeldeployment {} --cascade=orphan"
        )

    assert done.code == 0, (message, done)
    await until(reader.api, MODEL_DEPLOYMENTS, "m", reader.namespace, lambda obj: obj is None)
    reader.kubeconfig = reader.plane.kubeconfig
    again = await reader.kubefoundry("import", "rayservice/m", "--yes")
    assert again.code == 0, again


async def test_bundle_for_maintainers_is_written(reader: Reader) -> None:
    api, bundle = reader.api, reader.folder / "bundle.tgz"
    await register(api, "third")
    try:
        body = model_deployment("m", reader.namespace, GPU, provider="third")
        made = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
        condition = {
            "type": "ResourceCreated",
            "status": "False",
            "reason": "ProviderError",
            "message": "it has an error",
            "observedGeneration": made["metadata"]["generation"],
            "lastTransitionTime": "2026-02-04T10:00:00Z",
        }
        status: Object = {
            key: made[key] if key != "metadata" else {"name": "m", "namespace": reader.namespace}
            for key in ("apiVersion", "kind", "metadata")
        }
        status["status"] = {"conditions": [condition]}
        await api.apply_status(MODEL_DEPLOYMENTS, status, manager="third-provider")
        await until_deployment(api, "m", reader.namespace, lambda obj: reason(obj, "ProviderSelected"))
        message = await reader.says("status", "m")
        done = await reader.follow(
            message, "cli/advice: kubefoundry doctor --bundle FILE", {"FILE": str(bundle)}
        )
    finally:
        await unregister(api, "third")

    assert f"wrote {bundle}" in done.err, (message, done)
    assert bundle.stat().st_size


async def test_example_of_compat_compares_a_release(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    (reader.folder / "kuberay").mkdir()
    shutil.copy(STANDINS / "kuberay.yaml", reader.folder / "kuberay" / "v1.7.0.yaml")
    monkeypatch.setenv("KUBEFOUNDRY_UPSTREAM_CRDS", str(reader.folder))

    message = await reader.says("compat", "--release", "v1.7.0")
    words = command_in(message, "cli/commands/compat: kubefoundry compat kuberay --release v1.7.0")
    done = await reader.run(words, reader.kubeconfig)

    assert done.code == 0, (message, done)


async def doctor_page(access: Local, query: str) -> str:
    async with (
        TestServer(make(access)) as server,
        ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser,
    ):
        base = f"http://127.0.0.1:{server.port}"
        await (await browser.get(f"{base}/?code={access.code}")).release()
        async with browser.get(f"{base}/doctor{query}") as answer:
            return (await answer.text()).replace("<", " <")


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("", "dashboard/doctor: kubefoundry doctor -A"),
        ("?namespace={}", "dashboard/doctor: kubefoundry doctor"),
    ],
)
async def test_command_of_page_shows_findings(reader: Reader, query: str, key: str) -> None:
    body = model_deployment("m", reader.namespace, GPU, provider="nosuch")
    await reader.api.create(MODEL_DEPLOYMENTS, body, manager="test")
    access = Local(credentials.from_kubeconfig(str(reader.kubeconfig)), reader.namespace, 1)
    with click.Context(dashboard):
        name_namespaces()
        page = await doctor_page(access, query.format(reader.namespace))

    done = await reader.follow(page, key)

    assert (done.code, f"model {reader.namespace}/m" in done.out) == (1, True), done


async def test_command_of_page_creates_the_model(reader: Reader) -> None:
    body = model_deployment("m", reader.namespace, GPU, provider="kuberay")
    draft = Draft("m", reader.namespace, GPU, yaml.safe_dump(body))
    kubectl = reader.folder / "kubectl"
    program = shlex.join(reader.plane.kubectl_command)
    kubectl.write_text(f'#!/bin/sh\nPATH={shlex.quote(os.environ["PATH"])}\nexec {program} "$@"\n')
    kubectl.chmod(0o755)
    assert SITES["dashboard/create: kubectl apply -f - <<'EOF'"].pattern.match(draft.command)

    environment = {
        **os.environ,
        "PATH": f"{reader.folder}:{os.environ['PATH']}",
        "HOME": str(reader.folder),
        "KUBECONFIG": str(reader.kubeconfig),
    }
    done = await asyncio.to_thread(
        subprocess.run, ["sh", "-c", draft.command], env=environment, capture_output=True, check=False
    )

    assert done.returncode == 0, done
    assert await reader.api.get(MODEL_DEPLOYMENTS, "m", reader.namespace)


async def test_page_outside_a_cluster_starts_with_the_command(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(reader.kubeconfig))
    refused = CliRunner().invoke(dashboard, [])
    words = command_in(refused.output, "dashboard/main: kubefoundry start")

    # any port, because the usual one may be taken on this machine
    page = Running([*words[1:], "--port", "0"])
    await page.connect()
    link = await asyncio.wait_for(page.stdout.readline(), SECONDS)
    page.process.terminate()
    await page.communicate()

    assert link.decode().strip().startswith("http://127.0.0.1:")


async def test_crd_of_old_llama_stack_operator_is_replaced(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    [ours] = yaml.safe_load_all((ROOT / "crds/llamastack/llamastackdistributions.yaml").read_text())
    old = copy.deepcopy(ours)
    for version in old["spec"]["versions"]:
        server: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
            "server"
        ]
        del server["properties"]["externalProviders"]
    await reader.api.apply(CRDS, old, manager="old")
    name = str(ours["metadata"]["name"])
    stored = await reader.api.get(CRDS, name)
    obstacle = find_conflict(None, None, stored, None)  # type: ignore[arg-type]  # the CRD alone decides
    assert obstacle is not None

    monkeypatch.chdir(ROOT)
    done = await reader.follow(
        obstacle.message,
        "llamastack/coexistence: kubectl apply --server-side --force-conflicts -k crds/llamastack",
    )

    assert done.code == 0, done
    assert not drops_our_fields(await reader.api.get(CRDS, name))
    await reader.api.delete(CRDS, name, None, uid=stored["metadata"]["uid"])


async def test_log_of_a_llama_stack_container_is_asked_for(reader: Reader) -> None:
    status = pods.crash_loop("", restarts=1)
    await pods.pod(reader.api, reader.namespace, "server-0", {}, status)
    pod = await reader.api.get(PODS, "server-0", reader.namespace)
    role = ContainerRole(
        "example.com/stack:1", "distribution image", serves=True, namespace=reader.namespace, pod="server-0"
    )

    failed = containers.read(containers.status_of(pod, "main"), role)
    done = await reader.follow(
        failed.message, "llamastack/observe/containers: kubectl logs -n {} {} -c {} --previous"
    )

    # no kubelet runs here: the API server has found pod and container
    assert "not found" not in done.err, done
    assert "is not valid for pod" not in done.err, done


@pytest.mark.parametrize(
    "state", [{"terminated": {"exitCode": 3}}, {"running": {}}], ids=["ended", "unhealthy"]
)
async def test_log_of_a_provider_service_is_asked_for(reader: Reader, state: Object) -> None:
    cr = llsd("chat", reader.namespace, externalProviders={"safety": [{**GUARD, "service": {}}]})
    cr["metadata"] |= {"uid": "uid-1", "generation": 1}
    name = f"chat-{next(iter(state))}"
    names_of_containers = ("llama-stack", "provider-guard")
    body: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": reader.namespace},
        "spec": {
            "containers": [{"name": item, "image": "example.com/any:1"} for item in names_of_containers]
        },
    }
    await pods.account(reader.api, reader.namespace)
    created = await reader.api.create(PODS, body, manager="kubelet")
    serving = {**container("llama-stack", running={}), "started": True}
    service = {**container("provider-guard", **state), "ready": False}
    await pod_status(reader.api, created, {"phase": "Running", "containerStatuses": [serving, service]})
    pod = await reader.api.get(PODS, name, reader.namespace)

    [found] = sidecars.states(read(cr), [pod])
    assert found.failure is not None
    done = await reader.follow(
        found.failure.message, "llamastack/observe/sidecars: kubectl logs -n {} {} -c {}"
    )

    # no kubelet runs here: the API server has found pod and container
    assert "not found" not in done.err, done
    assert "is not valid for pod" not in done.err, done


@pytest.fixture
async def at_home(reader: Reader) -> Reader:
    """A reader whose kubeconfig names the namespace of the test."""
    document = yaml.safe_load(reader.kubeconfig.read_text())
    for context in document["contexts"]:
        context["context"]["namespace"] = reader.namespace
    reader.kubeconfig = reader.folder / "kubeconfig"
    reader.kubeconfig.write_text(yaml.safe_dump(document))
    return reader


@pytest.mark.parametrize(
    ("typed", "key", "expected"),
    [
        ("list", "cli/main: kubefoundry status", "m "),
        ("describe", "cli/main: kubefoundry doctor NAME", "m "),
        ("edit", "cli/main: kubectl edit md NAME", "no changes made"),
        ("apply", "cli/main: kubectl apply -f FILE", "modeldeployment.kubefoundry.ai/m "),
        ("run", "cli/main: kubefoundry deploy MODEL", "model"),
        ("delete", "cli/main: kubectl delete md NAME", "deleted"),
    ],
)
async def test_word_of_another_command_line_leads_to_a_command(
    at_home: Reader, monkeypatch: pytest.MonkeyPatch, typed: str, key: str, expected: str
) -> None:
    # kubectl opens an editor, which leaves the file as it is.
    monkeypatch.setenv("KUBE_EDITOR", "true")
    body = model_deployment("m", at_home.namespace, GPU, provider="kuberay")
    manifest = at_home.folder / "m.yaml"
    manifest.write_text(yaml.safe_dump(body))
    await at_home.api.create(MODEL_DEPLOYMENTS, body, manager="test")

    message = await at_home.says(typed)
    values = {"NAME": "m", "MODEL": "org/model", "FILE": str(manifest)}
    # A mistyped word is refused before any option is read: the command relies on KUBECONFIG.
    done = await at_home.run(
        [values.get(word, word) for word in command_in(message, key)], at_home.kubeconfig
    )

    assert expected in done.out + done.err, (message, done)


async def test_model_that_nobody_deleted_is_deleted(reader: Reader) -> None:
    await running(reader.api, reader.namespace, GPU, "kuberay")

    message = await reader.says("wait", "m", "--for", "deleted", "--timeout", "0")
    done = await reader.follow(message, "cli/commands/wait: kubectl delete modeldeployment {}")

    assert done.code == 0, (message, done)
    await until(reader.api, MODEL_DEPLOYMENTS, "m", reader.namespace, lambda obj: obj is None)


async def test_model_that_is_not_ready_in_time_is_shown(reader: Reader) -> None:
    await register(reader.api, "third")
    try:
        body = model_deployment("m", reader.namespace, GPU, provider="third")
        await reader.api.create(MODEL_DEPLOYMENTS, body, manager="test")
        await until_deployment(
            reader.api, "m", reader.namespace, lambda obj: reason(obj, "ProviderSelected") is not None
        )
        message = await reader.says("wait", "m", "--timeout", "0")
        done = await reader.follow(message, "cli/commands/wait: kubefoundry status {}")
    finally:
        await unregister(reader.api, "third")

    assert "m " in done.out, (message, done)
