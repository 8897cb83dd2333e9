"""docs/cli-transcript.md is what the commands print, in good cases and in each failure."""

from __future__ import annotations

import asyncio
import copy
import os
import shlex
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from click.testing import CliRunner

from kubefoundry_cli.main import kubefoundry
from kubefoundry_kuberay.provider import PODS
from kubefoundry_local.control_plane import ROOT, ControlPlane, control_plane
from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.crd import model_deployments
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support import pods
from support.command_line import CommandLine
from support.deployments import model_deployment
from support.engine import Engine, led_to, listening
from support.kinds import RAY_SERVICES, UPSTREAM
from support.kubelet import Kubelet, kubelet
from support.proxy import Fault, Proxy, before
from support.suites import running_suite
from support.transcript.days import BAD, EVERY, GOOD, NEW, SKEWED, Day, Step
from support.transcript.document import DOCUMENT, Printed, document, normalised
from support.upstream import standin
from support.waiting import phase, until, until_deployment

pytestmark = pytest.mark.integration

SPEC: dict[str, Any] = {
    "model": {"id": "Qwen/Qwen3-0.6B"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}
WRITE = "KUBEFOUNDRY_WRITE_TRANSCRIPT"
"""Set by `make transcript`."""

NOT_SERVED = Fault(404, "NotFound", message="the server could not find the requested resource")
NOTHING = Fault(404, "NotFound", message="not found")


def absent(request: web.Request) -> Fault | None:
    """An API server on which nobody has ever installed anything of ours."""
    if request.path.startswith("/apis/kubefoundry.ai"):
        return NOT_SERVED
    if request.path.endswith(("kubefoundry-system/deployments", "kubefoundry-system/leases")):
        return Fault(200, "", body={"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})
    if request.query.get("dryRun"):
        return Fault(201, "", body={"metadata": {"name": "accepted", "resourceVersion": "1"}})
    return NOTHING if "kubefoundry" in request.path or "ray.io" in request.path else None


def old(request: web.Request) -> Fault | None:
    """One that is older than what we support."""
    version = {"major": "1", "minor": "25", "gitVersion": "v1.25.16"}
    return Fault(200, "", body=version) if request.path == "/version" else absent(request)


def without(field: str) -> dict[str, Any]:
    """The CRD of RayServices whose spec lacks that field."""
    crd = copy.deepcopy(standin("kuberay").document)
    for version in crd["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][field]
    return crd


def broken(request: web.Request) -> Fault | None:
    crd = standin("kuberay").document["metadata"]["name"]
    if request.path.endswith(f"/customresourcedefinitions/{crd}"):
        return Fault(200, "", body=without("serveConfigV2"))
    return None


def skewed(request: web.Request) -> Fault | None:
    """One whose core and CRD are older than the command line."""
    if request.method != "GET":
        return None
    if request.path.endswith(f"/customresourcedefinitions/{MODEL_DEPLOYMENTS.crd}"):
        version = (crd := model_deployments())["spec"]["versions"][0]
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        del spec["engine"]["properties"]["contextLength"]
        return Fault(200, "", body=crd)
    if request.path.endswith("kubefoundry-system/deployments"):
        container = {"name": "core", "image": "kubefoundry/core:0.0.9"}
        core = {
            "metadata": {"name": "kubefoundry-core", "namespace": "kubefoundry-system"},
            "spec": {"replicas": 1, "template": {"spec": {"containers": [container]}}},
            "status": {"availableReplicas": 1},
        }
        body = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [core]}
        return Fault(200, "", body=body)
    return None


RULES = {"absent": absent, "old": old, "broken": broken, "skewed": skewed}


class Terminal:
    """Runs commands in a folder of their own, in this process: the same code, without the start of Python."""

    def __init__(self, folder: Path, kubeconfig: Path, namespace: str, arguments: Sequence[str] = ()) -> None:
        self.folder, self.arguments = folder, list(arguments)
        document = yaml.safe_load(kubeconfig.read_text())
        [context] = document["contexts"]
        context["context"]["namespace"] = namespace
        self.kubeconfig = folder / "config"
        self.kubeconfig.write_text(yaml.safe_dump(document))
        self.namespace = namespace
        for name, content in (
            ("qwen.yaml", model_deployment("qwen", namespace, SPEC)),
            ("ray.io_rayservices.yaml", standin("kuberay").document),
            ("broken.yaml", without("serveConfigV2")),
        ):
            (folder / name).write_text(yaml.safe_dump(content))

    async def __call__(self, step: Step) -> Printed:
        shown = f"kubefoundry {step.line}"
        words = shlex.split(step.line)
        if words[0] == "start" or {"--watch", "--follow"} & {*words}:
            return await self._started(shown, words, 2 if "--watch" in words else 1)
        asks = words[0] not in ("render", "images", "completion") and words[:2] not in (
            ["provider", "new"],
            ["provider", "manifest"],
        )
        reported = await asyncio.to_thread(
            CliRunner().invoke,
            kubefoundry,
            [*words, *(["--kubeconfig", str(self.kubeconfig), *self.arguments] if asks else ())],
            env={"KUBEFOUNDRY_UPSTREAM_CRDS": None},
            prog_name="kubefoundry",
        )
        assert reported.exception is None or isinstance(reported.exception, SystemExit), (
            shown,
            reported.exception,
        )
        return Printed(shown, reported.exit_code, self._normalised(reported.output))

    async def _started(self, shown: str, words: Sequence[str], count: int) -> Printed:
        """The first lines of one that goes on until Ctrl-C."""
        async with CommandLine(self.kubeconfig, self.namespace).lines(*words, *self.arguments) as lines:
            first = [await anext(lines) for _ in range(count)]
        return Printed(shown, 0, self._normalised("".join(first)))

    def _normalised(self, text: str) -> str:
        # as if it were KUBECONFIG, which the kubernetes package reads once for a whole process
        where = f" --kubeconfig {self.kubeconfig}"
        return normalised(text, {where: "", f"{self.folder}/": "", self.namespace: "team-alpha"})


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """One that nobody else has used: commands list the models, Events and settings of the whole cluster."""
    with running_suite(tmp_path_factory.mktemp("transcript"), *UPSTREAM) as made:
        made.start()
        yield made


@pytest.fixture
async def node(api: Client, tmp_path: Path, namespace: str) -> AsyncIterator[Kubelet]:
    async with kubelet(api, f"node-{namespace}", tmp_path / "kubelet") as made:
        yield made


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """One on which nobody has installed anything."""
    with control_plane(tmp_path / "plane") as made:
        made.kubectl("delete", "-k", str(ROOT / "crds"))
        yield made


async def test_transcript_has_the_output_of_the_commands(
    plane: ControlPlane,
    suite: Suite,
    api: Client,
    namespace: str,
    node: Kubelet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    engine = Engine("Qwen3-0.6B")
    for word in ("Hello", ", ", "world", ".", None):
        engine.words.put_nowait(word)
    node.written += ["INFO loading Qwen/Qwen3-0.6B", "INFO listening on 0.0.0.0:8000"]
    then = After(api, namespace, node, engine)
    async with listening(engine) as port:
        then.port = port
        printed = [
            (NEW, await spent(NEW, plane, "default", folder, then)),
            *[(day, await spent(day, suite.plane, namespace, folder, then)) for day in (GOOD, *BAD, SKEWED)],
        ]

    found = document(printed)
    if os.environ.get(WRITE):
        DOCUMENT.write_text(found)
    assert found == DOCUMENT.read_text(), "run `make transcript`"
    assert GOOD.commands == EVERY


async def spent(day: Day, plane: ControlPlane, namespace: str, folder: Path, then: After) -> list[Printed]:
    """What the commands of that day print."""
    kubeconfig, arguments = plane.kubeconfig, list[str]()
    async with AsyncExitStack() as stack:
        if day.key in RULES:
            proxy: Proxy
            proxy, kubeconfig = await stack.enter_async_context(before(kubeconfig, folder / day.key))
            proxy.rule = RULES[day.key]
        if day.key == "none":
            document = yaml.safe_load(kubeconfig.read_text())
            document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"
            kubeconfig = folder / "nobody"
            kubeconfig.write_text(yaml.safe_dump(document))
        if day.key == "forbidden":
            arguments = ["--as", "ann"]
        if day.key == "broken":
            await then("fails")
        terminal = Terminal(folder, kubeconfig, namespace, arguments)
        printed = []
        for step in day.steps:
            printed.append(await terminal(step))
            if step.then:
                await then(step.then)
        return printed


class After:
    """What has to hold before the next command, so that it prints the same in every run."""

    def __init__(self, api: Client, namespace: str, node: Kubelet, engine: Engine) -> None:
        self.api, self.namespace, self.node, self.engine = api, namespace, node, engine
        self.port = 0

    async def __call__(self, what: str) -> None:
        await getattr(self, f"_{what}")()

    async def _running(self) -> None:
        await until_deployment(self.api, "qwen", self.namespace, at_rest)

    async def _pods(self) -> None:
        await self.node.pod(self.api, self.namespace, "qwen-head", await self._label("head"))
        obj = await self.api.get(MODEL_DEPLOYMENTS, "qwen", self.namespace)
        await led_to(self.api, self.namespace, obj["status"]["endpoint"]["service"], self.port, "serve")

    async def _gone(self) -> None:
        await until(self.api, MODEL_DEPLOYMENTS, "qwen", self.namespace, lambda obj: obj is None)

    async def _fails(self) -> None:
        live = await self.api.get(MODEL_DEPLOYMENTS, "qwen", self.namespace)
        await self.api.delete(MODEL_DEPLOYMENTS, "qwen", self.namespace, uid=live["metadata"]["uid"])
        await self._gone()
        await until(self.api, RAY_SERVICES, "qwen", self.namespace, lambda obj: obj is None)
        body = model_deployment(
            "qwen",
            self.namespace,
            SPEC,
            provider="kuberay",
            labels={"kubefoundry.ai/simulator-fail": "loading"},
        )
        await self.api.create(MODEL_DEPLOYMENTS, body, manager="test")
        await until(self.api, RAY_SERVICES, "qwen", self.namespace, has_cluster)
        why = pods.crash_loop("torch.OutOfMemoryError: CUDA out of memory")
        await pods.pod(self.api, self.namespace, "qwen-worker", await self._label("worker"), why)
        await until_deployment(self.api, "qwen", self.namespace, lambda obj: phase(obj) == "Failed")

    async def _label(self, role: str) -> dict[str, str]:
        """Labels of the model's pods of that role."""
        live = await self.api.get(RAY_SERVICES, "qwen", self.namespace)
        return {PODS.label: PODS.values(live)[0], PODS.roles[0]: role}


def has_cluster(obj: Object | None) -> bool:
    return obj is not None and bool(PODS.values(obj))


def at_rest(obj: Object) -> bool:
    return (
        phase(obj) == "Running"
        and obj["status"].get("observedGeneration") == obj["metadata"]["generation"]
        and (obj["status"].get("replicas") or {}).get("ready")
        == obj["spec"].get("scaling", {}).get("replicas", 1)
    )
