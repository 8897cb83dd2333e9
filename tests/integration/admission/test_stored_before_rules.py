"""Objects older than a rule that they break: explained, hidden from providers, corrected, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.admission import REFUSED_BY_WEBHOOK, install_crd, install_crd_without
from support.deployments import CPU, GPU, model_deployment
from support.kinds import WORKSPACES
from support.refused_specs import GONE, changed
from support.suites import install_crd as install_upstream
from support.upstream import standin
from support.waiting import phase, reason, serves, until, until_deployment

pytestmark = pytest.mark.integration

NO_MODEL = changed(CPU, model__id=GONE)
NO_GPU = changed(GPU, resources__gpu__count=0)
FLAG_AS_NAME = changed(CPU, model__id="org/-model")

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no-model": (NO_MODEL, "spec.model.id: model.id is required when source is huggingface"),
    "no-gpu": (
        NO_GPU,
        "spec.resources.gpu.count: vLLM engine requires GPU (set resources.gpu.count > 0)",
    ),
    "flag-as-name": (
        FLAG_AS_NAME,
        "spec.model.servedName: the last part of model.id begins with a dash, so engines take it for a flag: "
        "set model.servedName",
    ),
    "contradiction": (
        REFUSED_BY_WEBHOOK,
        'spec.engine.args[ctx-size]: is "4096" but engine.contextLength is "8192": set only engine.contextLength',
    ),
}
"""Specs by name, and what core says of each."""


@pytest.fixture
async def upgraded(fresh: Suite, api: Client, namespace: str) -> Suite:
    """Core, selector and a provider that came with today's CRD to bad objects: one that names its provider, and one
    for the selector, of each kind."""
    install_upstream(fresh, standin("kaito").document)
    fresh.simulate("kaito")
    await install_crd_without(fresh.plane, api)
    for name, (spec, _) in BAD.items():
        for provider in (None, "kaito"):
            body = model_deployment(called(name, provider), namespace, spec, provider=provider)
            await api.create(MODEL_DEPLOYMENTS, body, manager="user")
    await install_crd(fresh.plane, api)
    fresh.start("core", "selector", "kaito")
    return fresh


def called(name: str, provider: str | None) -> str:
    return f"{name}-{provider or 'auto'}"


ALL = [
    (called(name, provider), reported) for name, (_, reported) in BAD.items() for provider in (None, "kaito")
]


def judged(obj: Object) -> bool:
    return reason(obj, "Validated") is not None


@pytest.mark.needs_kubernetes("1.30", "updates of objects that are older than a rule of their CRD")
async def test_invalid_stored_model_waits_with_the_reason(
    upgraded: Suite, api: Client, namespace: str
) -> None:
    for name, reported in ALL:
        obj = await until_deployment(api, name, namespace, judged)
        validated = find(obj["status"]["conditions"], "Validated") or {}
        assert (validated["status"], validated["reason"], validated["message"]) == (
            "False",
            "ValidationFailed",
            reported,
        )
        assert (obj["status"]["phase"], obj["status"]["message"]) == ("Pending", reported)
        assert reason(obj, "Ready") == "Progressing"

    # One that came later ran: what nothing was made of by now is left alone.
    await api.create(MODEL_DEPLOYMENTS, model_deployment("good", namespace, CPU), manager="user")
    await until_deployment(api, "good", namespace, lambda obj: phase(obj) == "Running")
    workspaces, _ = await api.list(WORKSPACES, namespace)
    assert [workspace["metadata"]["name"] for workspace in workspaces] == ["good"]


async def test_invalid_stored_model_serves_when_corrected(
    upgraded: Suite, api: Client, namespace: str
) -> None:
    for name, _ in ALL:
        await api.json_patch(
            MODEL_DEPLOYMENTS,
            name,
            namespace,
            [
                {"op": "replace", "path": "/spec/engine", "value": CPU["engine"]},
                {"op": "replace", "path": "/spec/model", "value": CPU["model"]},
                {"op": "replace", "path": "/spec/resources", "value": CPU["resources"]},
                {"op": "add", "path": "/spec/image", "value": CPU["image"]},
            ],
            manager="user",
        )
    for name, _ in ALL:
        obj = await until_deployment(api, name, namespace, serves)
        assert reason(obj, "Validated") == "ValidationPassed"


@pytest.mark.needs_kubernetes("1.30", "updates of objects that are older than a rule of their CRD")
async def test_they_can_be_labelled_and_deleted_but_not_spoilt_further(
    upgraded: Suite, api: Client, namespace: str
) -> None:
    """Finalizers, a provider's own too, come off although the spec would be refused today."""
    name, _ = ALL[0]
    finalizers = ["example.com/theirs", "kubefoundry.ai/kaito-provider"]
    patched = await api.json_patch(
        MODEL_DEPLOYMENTS,
        name,
        namespace,
        [
            {"op": "add", "path": "/metadata/labels", "value": {"kept": "yes"}},
            {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
        ],
        manager="user",
    )
    more = [{"op": "add", "path": "/spec/scaling/replicas", "value": 2}]
    with pytest.raises(ApiError, match=r"model\.id is required"):
        await api.json_patch(MODEL_DEPLOYMENTS, name, namespace, more, manager="user")

    await api.delete(MODEL_DEPLOYMENTS, name, namespace, uid=patched["metadata"]["uid"])
    await until_deployment(
        api, name, namespace, lambda obj: obj["metadata"]["finalizers"] == ["example.com/theirs"]
    )
    await api.json_patch(
        MODEL_DEPLOYMENTS,
        name,
        namespace,
        [{"op": "remove", "path": "/metadata/finalizers"}],
        manager="user",
    )
    await until(api, MODEL_DEPLOYMENTS, name, namespace, lambda obj: obj is None)

    upgraded.plane.kubectl("delete", "namespace", namespace, "--timeout=180s")


async def test_model_that_serves_goes_on_under_a_bad_change(
    fresh: Suite, api: Client, namespace: str
) -> None:
    install_upstream(fresh, standin("kaito").document)
    fresh.simulate("kaito")
    fresh.start("core", "kaito")
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU, provider="kaito"), manager="user"
    )
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    served = await api.get(WORKSPACES, "m", namespace)

    fresh.components["core"].stop()
    bad = [{"op": "replace", "path": "/spec/engine", "value": REFUSED_BY_WEBHOOK["engine"]}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, bad, manager="user")
    fresh.start("core")

    _, reported = BAD["contradiction"]
    obj = await until_deployment(api, "m", namespace, lambda obj: reported in obj["status"]["message"])
    assert obj["status"]["message"] == f"{reported}; the last good version keeps serving"
    assert (phase(obj), reason(obj, "Validated"), reason(obj, "Ready")) == (
        "Running",
        "ValidationFailed",
        "DeploymentReady",
    )
    now = await api.get(WORKSPACES, "m", namespace)
    assert now["metadata"]["generation"] == served["metadata"]["generation"]

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=obj["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, WORKSPACES, "m", namespace, lambda obj: obj is None)
