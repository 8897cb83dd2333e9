"""Why a model does not serve, read from its pods: which causes are failures and which are only reported."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support import pods
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.edits import running
from support.kinds import RAY_SERVICES, UPSTREAM
from support.waiting import message, phase, reason, until_deployment
from support.wishes import change_spec

pytestmark = pytest.mark.integration

STUCK = {"kaito": "unschedulable", "dynamo": "not-ready", "kuberay": "deploy-failed"}
"""What keeps the simulated upstream from ever serving."""
LABELS = {"kaito": "kaito.sh/workspace", "dynamo": "nvidia.com/dynamo-graph-deployment-name"}


async def label(api: Client, namespace: str, provider: str) -> dict[str, str]:
    """What the upstream operator puts on the pods of `m`."""
    if provider != "kuberay":
        return {LABELS[provider]: "m"}
    status = (await api.get(RAY_SERVICES, "m", namespace))["status"]
    cluster = (status.get("activeServiceStatus") or {}).get("rayClusterName")
    return {"ray.io/cluster": cluster or status["pendingServiceStatus"]["rayClusterName"]}


async def stuck(api: Client, namespace: str, provider: str) -> None:
    """A ModelDeployment that does not come to serve, as far as its upstream has got with it."""
    body = model_deployment(
        "m", namespace, GPU, provider=provider, labels={"kubefoundry.ai/simulator-fail": STUCK[provider]}
    )
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(
        api, "m", namespace, lambda obj: phase(obj) == ("Failed" if provider == "kuberay" else "Deploying")
    )


def said(obj: Object, start: str) -> bool:
    words = obj["status"]["message"]
    return bool(words.startswith(start)) and message(obj, "Ready") == words


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_pod_that_cannot_start_fails_a_model_without_others(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    await stuck(api, namespace, provider)
    before = phase(await api.get(MODEL_DEPLOYMENTS, "m", namespace))
    log = AuditLog(suite)
    theirs = await label(api, namespace, provider)

    await pods.pod(api, namespace, "m-0", theirs, pods.waiting("ErrImagePull", "rpc error: no such tag"))

    failed = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: said(
            obj,
            "image example.com/engine:1 of container main of pod m-0 cannot be pulled: rpc error: no such tag; "
            "correct the image, or give the nodes access to its registry (",
        ),
    )
    assert (phase(failed), reason(failed, "Ready")) == ("Failed", "Failed")

    await pods.pod(api, namespace, "m-0", theirs, pods.ready())

    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: phase(obj) == before and "cannot be pulled" not in message(obj, "Ready"),
    )
    # Told by the watch alone.
    assert log.requests(f"provider-{provider}", namespace, "pods") == []


async def test_pod_that_finds_no_node_is_reported_and_waited_for(
    suite: Suite, api: Client, namespace: str
) -> None:
    await stuck(api, namespace, "dynamo")

    status = pods.unschedulable("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    await pods.pod(api, namespace, "m-0", await label(api, namespace, "dynamo"), status)

    received = await until_deployment(
        api, "m", namespace, lambda obj: said(obj, "pod m-0 cannot be scheduled: 0/3 nodes are available")
    )
    assert (phase(received), reason(received, "Ready")) == ("Deploying", "Progressing")


@pytest.mark.needs_kubernetes("1.27", "scheduling gates of pods")
async def test_gated_pod_is_reported_with_its_gate(suite: Suite, api: Client, namespace: str) -> None:
    await stuck(api, namespace, "dynamo")

    gate = "example.com/queue"
    await pods.pod(api, namespace, "m-0", await label(api, namespace, "dynamo"), pods.gated(), gates=[gate])

    received = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: said(obj, f"pod m-0 is not scheduled because of scheduling gate {gate}"),
    )
    assert (phase(received), reason(received, "Ready")) == ("Deploying", "Progressing")


async def test_finished_pods_are_reported_only_while_nothing_serves(
    suite: Suite, api: Client, namespace: str
) -> None:
    await stuck(api, namespace, "dynamo")
    theirs = await label(api, namespace, "dynamo")

    await pods.pod(
        api, namespace, "m-0", theirs, pods.evicted("The node was low on resource: ephemeral-storage.")
    )

    evicted = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: said(obj, "pod m-0 has failed: Evicted: The node was low on resource"),
    )
    assert (phase(evicted), reason(evicted, "Ready")) == ("Deploying", "Progressing")

    for number in range(1, 4):
        status = pods.refused("UnexpectedAdmissionError", "Pod was rejected: no healthy devices present")
        await pods.pod(api, namespace, f"m-{number}", theirs, status)

    refused = await until_deployment(
        api, "m", namespace, lambda obj: "and so have 2 other pods" in message(obj, "Ready")
    )
    assert message(refused, "Ready").startswith(
        "pod m-1 has failed: UnexpectedAdmissionError: Pod was rejected"
    )
    assert phase(refused) == "Deploying"


async def test_evicted_pod_leaves_no_message_on_a_serving_model(
    suite: Suite, api: Client, namespace: str
) -> None:
    before = await running(api, namespace, GPU, "dynamo")
    theirs = await label(api, namespace, "dynamo")

    await pods.pod(api, namespace, "m-0", theirs, pods.evicted("The node was low on resource: memory."))
    # The second pod proves that the provider has read the first.
    await pods.pod(api, namespace, "m-1", theirs, pods.crash_loop("ValueError: x"))

    received = await until_deployment(api, "m", namespace, lambda obj: "ValueError" in message(obj, "Ready"))
    assert "m-0" not in message(received, "Ready") and "Evicted" not in message(received, "Ready")

    await pods.pod(api, namespace, "m-1", theirs, pods.ready())
    received = await until_deployment(
        api, "m", namespace, lambda obj: message(obj, "Ready") == message(before, "Ready")
    )
    assert phase(received) == "Running"


async def test_serving_model_names_its_crashing_pod(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "dynamo")

    status = pods.crash_loop("Traceback\nRuntimeError: CUDA out of memory")
    await pods.pod(api, namespace, "m-1", await label(api, namespace, "dynamo"), status)

    received = await until_deployment(
        api, "m", namespace, lambda obj: "RuntimeError" in message(obj, "Ready")
    )
    assert (phase(received), reason(received, "Ready")) == ("Running", "DeploymentReady")
    assert (
        "pod m-1 keeps crashing, restarted 4 times: RuntimeError: CUDA out of memory (exit code 1)"
        in message(received, "Ready")
    )


async def test_bad_edit_does_not_hide_a_later_crash(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "kaito")
    # KAITO cannot: writing stops here.
    await change_spec(api, namespace, "/spec/scaling/replicas", 3)
    kept = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )
    assert phase(kept) == "Running"
    assert kept["status"]["replicas"] == {"desired": 1, "ready": 1, "available": 1}

    # The upstream alone, then its pod.
    fail = [
        {
            "op": "add",
            "path": "/metadata/annotations/simulator.kubefoundry.ai~1fail",
            "value": "unschedulable",
        }
    ]
    await api.json_patch(UPSTREAM["kaito"], "m", namespace, fail, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) != "Running")
    await pods.pod(
        api, namespace, "m-0", await label(api, namespace, "kaito"), pods.crash_loop("ValueError: x")
    )

    crashed = await until_deployment(
        api, "m", namespace, lambda obj: "keeps crashing" in message(obj, "Ready")
    )
    assert (phase(crashed), reason(crashed, "ProviderCompatible")) == ("Failed", "Unsupported")
    assert "pod m-0 keeps crashing, restarted 4 times: ValueError: x (exit code 1)" in message(
        crashed, "Ready"
    )
    assert "endpoint" not in crashed["status"]
