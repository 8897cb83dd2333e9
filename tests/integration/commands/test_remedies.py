"""Each command in a message about a model runs as printed and removes the problem."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support import pods
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment
from support.edits import running
from support.kinds import RAY_SERVICES
from support.reader import Reader
from support.registrations import register, unregister
from support.waiting import phase, reason, until, until_deployment
from support.wishes import annotate

pytestmark = pytest.mark.integration

FAIL: Final = "kubefoundry.ai/simulator-fail"


@pytest.fixture
async def reader(suite: Suite, api: Client, namespace: str, tmp_path: Path) -> Reader:
    return Reader(suite.plane, api, namespace, tmp_path, suite.plane.kubeconfig)


async def create(
    reader: Reader, provider: str | None = "kuberay", spec: Object = GPU, **metadata: Any
) -> None:
    """Make model `m`."""
    body = model_deployment("m", reader.namespace, spec, provider=provider, **metadata)
    await reader.api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def until_model(reader: Reader, holds: Callable[[Object], Any]) -> Object:
    return await until_deployment(reader.api, "m", reader.namespace, holds)


async def serving(reader: Reader, provider: str = "kuberay") -> Object:
    return await running(reader.api, reader.namespace, GPU, provider)


async def doctor(reader: Reader) -> str:
    return await reader.says("doctor", "m")


async def paused(reader: Reader) -> str:
    await create(reader, annotations={names.PAUSED_ANNOTATION: "true"})
    await until_model(reader, lambda obj: (obj.get("status") or {}).get("message") == "reconciliation paused")
    return await doctor(reader)


async def plan_of_paused(reader: Reader) -> str:
    await serving(reader)
    await annotate(reader.api, reader.namespace, names.PAUSED_ANNOTATION, "true")
    return await reader.says("plan", "m", "--set", "engine.contextLength=4096")


async def paused_by_command(reader: Reader) -> str:
    await create(reader)
    return await reader.says("pause", "m")


async def resumed(reader: Reader) -> None:
    await until_model(
        reader, lambda obj: names.PAUSED_ANNOTATION not in (obj["metadata"].get("annotations") or {})
    )
    assert "is paused" not in await doctor(reader)


async def scaled_to_zero(reader: Reader) -> str:
    await create(reader, spec={**GPU, "scaling": {"replicas": 0}})
    await until_model(reader, lambda obj: reason(obj, "Ready") == "ScaledToZero")
    return await doctor(reader)


async def is_running(reader: Reader) -> None:
    await until_model(reader, lambda obj: phase(obj) == "Running")


async def secret_missing(reader: Reader) -> str:
    await create(reader, "direct", {**GPU, "secrets": {"huggingFaceToken": "hf"}})
    await until_model(reader, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated")
    return await doctor(reader)


async def config_map_missing(reader: Reader) -> str:
    reference = {"configMapKeyRef": {"name": "settings", "key": "LEVEL"}}
    await create(reader, "direct", {**GPU, "env": [{"name": "LEVEL", "valueFrom": reference}]})
    await until_model(reader, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated")
    return await doctor(reader)


async def unregistered(reader: Reader) -> str:
    await create(reader, "nosuch")
    obj = await until_model(reader, lambda obj: reason(obj, "ProviderSelected") == "ProviderNotRegistered")
    return str(obj["status"]["message"])


async def nothing_is_missing(reader: Reader) -> None:
    assert "does not exist" not in await doctor(reader)


async def unsupported(reader: Reader) -> str:
    await create(reader, "kaito", {**GPU, "scaling": {"replicas": 3}})
    await until_model(reader, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported")
    return await doctor(reader)


async def eject_of_unsupported(reader: Reader) -> str:
    await unsupported(reader)
    return await reader.says("eject", "m", "--yes")


async def is_deleted(reader: Reader) -> None:
    await until(reader.api, MODEL_DEPLOYMENTS, "m", reader.namespace, lambda obj: obj is None)


async def failed(reader: Reader) -> str:
    await create(reader, labels={FAIL: "deploy-failed"})
    await until_model(reader, lambda obj: phase(obj) == "Failed")
    return await doctor(reader)


async def pod_label(reader: Reader) -> dict[str, str]:
    status = (await reader.api.get(RAY_SERVICES, "m", reader.namespace))["status"]
    cluster = (status.get("activeServiceStatus") or {}).get("rayClusterName")
    return {"ray.io/cluster": cluster or status["pendingServiceStatus"]["rayClusterName"]}


async def crashing(reader: Reader) -> str:
    await failed(reader)
    status = pods.crash_loop("CUDA out of memory")
    await pods.pod(reader.api, reader.namespace, "m-0", await pod_label(reader), status)
    obj = await until_model(reader, lambda obj: "pod m-0" in obj["status"]["message"])
    return str(obj["status"]["message"])


async def doctor_of_crashing(reader: Reader) -> str:
    await crashing(reader)
    return await doctor(reader)


async def pod_failed(reader: Reader) -> str:
    await failed(reader)
    status = pods.refused("UnexpectedAdmissionError", "no device")
    await pods.pod(reader.api, reader.namespace, "m-0", await pod_label(reader), status)
    obj = await until_model(reader, lambda obj: "pod m-0" in obj["status"]["message"])
    return str(obj["status"]["message"])


async def name_taken(reader: Reader) -> str:
    """As the message says, the ModelDeployment is deleted before its command is run."""
    await serving(reader)
    await reader.says("eject", "m", "--yes")
    await create(reader)
    obj = await until_model(reader, lambda obj: reason(obj, "ResourceCreated") == "NameConflict")
    found = await doctor(reader)
    await reader.api.delete(MODEL_DEPLOYMENTS, "m", reader.namespace, uid=obj["metadata"]["uid"])
    await is_deleted(reader)
    return found


async def unknown_name(reader: Reader) -> str:
    await create(reader)
    return await reader.says("status", "n")


async def imported(reader: Reader) -> str:
    await serving(reader)
    await reader.says("eject", "m", "--yes")
    return await reader.says("import", "rayservice/m", "--yes")


async def deployed(reader: Reader) -> str:
    return await reader.says("deploy", "org/model", "m", "--provider", "kuberay", "--yes")


async def deployed_twice(reader: Reader) -> str:
    await deployed(reader)
    return await deployed(reader)


async def scaled(reader: Reader) -> str:
    await create(reader)
    return await reader.says("scale", "m", "2")


async def logs_without_pods(reader: Reader) -> str:
    # simulated operators create no pods
    await serving(reader)
    return await reader.says("logs", "m")


async def no_models(reader: Reader) -> str:
    file = reader.folder / "model.yaml"
    file.write_text(yaml.safe_dump(model_deployment("m", reader.namespace, GPU, provider="kuberay")))
    return await reader.says("status")


async def namespace_missing(reader: Reader) -> str:
    done = await CommandLine(reader.kubeconfig, f"{reader.namespace}-absent")("status")
    return done.err


async def handed_over(reader: Reader) -> str:
    await serving(reader)
    body = {
        "apiVersion": MODEL_DEPLOYMENTS.api_version,
        "kind": MODEL_DEPLOYMENTS.kind,
        "metadata": {
            "name": "m",
            "namespace": reader.namespace,
            "finalizers": [names.provider_finalizer("other")],
        },
    }
    await reader.api.apply(MODEL_DEPLOYMENTS, body, manager=names.provider_manager("other"))
    return await reader.says("eject", "m", "--yes")


async def unreachable(reader: Reader) -> str:
    await serving(reader)
    return await reader.says("curl", "m", "/v1/models")


async def edited_identity(reader: Reader) -> str:
    """Return the warning of a dry run, since a real edit would recreate the object while the command reads it."""
    await serving(reader, "kaito")
    patch = '[{"op":"replace","path":"/spec/model/id","value":"org/other"}]'
    return reader.plane.kubectl(
        *("patch", "md", "m", "-n", reader.namespace, "--type=json", "--dry-run=server", "-p", patch)
    ).stderr


async def kept_selection(reader: Reader) -> str:
    await register(reader.api, "third", ("true", 900))
    try:
        await create(reader, None)
        await until_model(
            reader,
            lambda obj: ((obj.get("status") or {}).get("provider") or {}).get("name") == "third",
        )
    finally:
        await unregister(reader.api, "third")
    return await reader.says("explain", "m")


async def direct_paused(reader: Reader) -> str:
    await create(reader, "direct")
    await until_model(reader, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated")
    reader.plane.kubectl("rollout", "pause", "deployment/m", "-n", reader.namespace)
    obj = await until_model(reader, lambda obj: "rollout resume" in obj["status"]["message"])
    return str(obj["status"]["message"])


async def rollout_resumed(reader: Reader) -> None:
    await until_model(reader, lambda obj: "rollout resume" not in obj["status"]["message"])


@dataclass(frozen=True)
class Case:
    """A trouble and the command that its message names.

    key: of the command in `message_commands.SITES`.
    trouble: brings the trouble about and returns the message.
    shows: part of the command's output.
    code: with which the command ends; None for `status`, which reports whether the model serves.
    over: passes once the trouble is over; None if the command only explains.
    fill: values for words in capitals, which the message leaves to the reader.
    """

    key: str
    trouble: Callable[[Reader], Awaitable[str]]
    shows: str = ""
    over: Callable[[Reader], Awaitable[None]] | None = None
    code: int | None = 0
    fill: dict[str, str] = field(default_factory=dict)


CASES: Final = (
    Case("cli/health: kubefoundry resume {}", paused, over=resumed),
    Case("cli/suspension: kubefoundry resume {}", plan_of_paused, over=resumed),
    Case("cli/commands/lifecycle: kubefoundry resume {}", paused_by_command, over=resumed),
    Case("cli/advice: kubefoundry scale {} 1", scaled_to_zero, over=is_running),
    Case(
        "cli/checks/models: kubectl create secret generic {} --from-literal={}=…",
        secret_missing,
        "secret/hf created",
        over=nothing_is_missing,
    ),
    Case(
        "cli/checks/models: kubectl create configmap {} --from-literal={}=…",
        config_map_missing,
        "configmap/settings created",
        over=nothing_is_missing,
    ),
    Case("core/decision: kubefoundry provider list", unregistered, "kuberay"),
    Case("cli/advice: kubefoundry explain {}", unsupported, "kaito refuses it: ", code=1),
    Case("cli/ejection: kubectl delete modeldeployment {}", eject_of_unsupported, "deleted", over=is_deleted),
    Case("cli/advice: kubefoundry status {}", failed, "RayService 'm'", code=None),
    Case("cli/advice: kubefoundry logs {}", failed, "has no pods yet", code=1),
    Case("cli/checks/one_model: kubectl describe pod {}", doctor_of_crashing, "CrashLoopBackOff"),
    Case("sdk/_provider/health/pod_causes: kubectl describe pod -n {} {}", pod_failed, "no device"),
    # no kubelet runs here: the API server has found pod and container, and no node
    Case(
        "sdk/_provider/health/pod_causes: kubectl logs -n {} {} -c {} --previous",
        crashing,
    ),
    Case("cli/advice: kubefoundry import {}/{}", name_taken, over=is_running),
    Case("cli/cluster: kubefoundry status -A", unknown_name, "{namespace}"),
    Case("cli/commands/adopt: kubefoundry status {}", imported, "RayService 'm'", code=None),
    Case("cli/commands/deploy: kubefoundry status {}", deployed, "Model:      org/model", code=None),
    Case(
        "cli/creation: kubefoundry plan {} --set PATH=VALUE",
        deployed_twice,
        "engine.contextLength",
        fill={"PATH=VALUE": "engine.contextLength=4096"},
    ),
    Case("cli/commands/lifecycle: kubefoundry status {}", scaled, "Model:      org/model", code=None),
    Case("cli/commands/logs: kubefoundry status {}", logs_without_pods, "Model:      org/model", code=None),
    Case("cli/commands/status: kubefoundry deploy MODEL", no_models, "created", fill={"MODEL": "org/m"}),
    Case("cli/commands/status: kubectl apply -f FILE", no_models, "created", over=is_running),
    Case("cli/cluster: kubectl create namespace {}", namespace_missing, "-absent created"),
    Case("cli/ejection: kubefoundry status {}", handed_over, "Model:      org/model", code=None),
    Case("cli/endpoint: kubefoundry status {}", unreachable, "Model:      org/model", code=None),
    Case(
        "core/admission/modeldeployments: kubefoundry plan {} --set PATH=VALUE -n {}",
        edited_identity,
        "RECREATED",
        fill={"PATH=VALUE": "model.id=org/third"},
    ),
    Case("cli/commands/explain: kubefoundry reselect {}", kept_selection, over=is_running),
    Case("direct/observe: kubectl rollout resume deployment/{} -n {}", direct_paused, over=rollout_resumed),
)


@pytest.mark.parametrize("case", CASES, ids=[case.key for case in CASES])
async def test_command_of_message_works_when_followed(reader: Reader, case: Case) -> None:
    message = await case.trouble(reader)

    fill = {"FILE": str(reader.folder / "model.yaml"), **case.fill}
    done = await reader.follow(message, case.key, fill)

    assert case.code in (None, done.code), (message, done)
    assert case.shows.format(namespace=reader.namespace) in done.out + done.err, (message, done)
    if case.over is not None:
        await case.over(reader)


async def test_wait_of_messages_ends_when_the_model_serves(reader: Reader) -> None:
    await create(reader, labels={FAIL: "loading"})
    await until_model(reader, lambda obj: reason(obj, "Ready") == "Progressing")
    messages = {
        "cli/advice: kubefoundry wait {}": await doctor(reader),
        "cli/endpoint: kubefoundry wait {}": await reader.says("curl", "m", "/v1/models"),
    }

    waits = [asyncio.create_task(reader.follow(text, key)) for key, text in messages.items()]
    cured = [{"op": "remove", "path": f"/metadata/labels/{FAIL.replace('/', '~1')}"}]
    await reader.api.json_patch(MODEL_DEPLOYMENTS, "m", reader.namespace, cured, manager="test")

    for wait in waits:
        done = await wait
        assert (done.code, "ready at" in done.err) == (0, True), done


async def test_wait_of_a_changed_model_ends_when_it_serves(reader: Reader) -> None:
    await serving(reader)
    changes: list[dict[str, Any]] = [
        {"op": "add", "path": "/metadata/labels", "value": {FAIL: "updating"}},
        {"op": "add", "path": "/spec/engine/contextLength", "value": 4096},
    ]
    await reader.api.json_patch(MODEL_DEPLOYMENTS, "m", reader.namespace, changes, manager="test")
    await until_model(reader, lambda obj: reason(obj, "Ready") == "Progressing")

    wait = asyncio.create_task(reader.follow(await doctor(reader), "cli/health: kubefoundry wait {}"))
    cured = [{"op": "remove", "path": f"/metadata/labels/{FAIL.replace('/', '~1')}"}]
    await reader.api.json_patch(MODEL_DEPLOYMENTS, "m", reader.namespace, cured, manager="test")

    done = await wait
    assert (done.code, "ready at" in done.err) == (0, True), done
