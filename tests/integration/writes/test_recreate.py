"""An upstream object is recreated: tried by a dry run first, once for several edits, and reported truthfully."""

from __future__ import annotations

import asyncio
import json

import pytest

from kubefoundry_local.audit_log import requests_by_user
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.changes.seen import TEMPLATE, Spec, runs
from support.deployments import GPU, model_deployment
from support.finalizers import held
from support.kinds import UPSTREAM
from support.upstream import PROVIDERS
from support.waiting import SECONDS, message, phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

ENDPOINTS = {"kaito": "m", "dynamo": "m-frontend", "kuberay": "m-serve-svc"}


@pytest.fixture(scope="module")
def suite(strict_suite: Suite) -> Suite:
    return strict_suite


async def running(api: Client, namespace: str, provider: str, spec: Spec) -> Object:
    """The upstream object of a new ModelDeployment that runs."""
    body = model_deployment("m", namespace, spec, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    live = await until(api, UPSTREAM[provider], "m", namespace, runs)
    assert live is not None
    return live


async def put(api: Client, namespace: str, path: str, value: object) -> Object:
    """The ModelDeployment with another value at a JSON pointer of its spec."""
    patch = [{"op": "add", "path": f"/spec/{path}", "value": value}]
    return await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, patch, manager="test")


def deleting(obj: Object | None) -> bool:
    return obj is not None and "deletionTimestamp" in obj["metadata"]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_identity_change_keeps_the_endpoint_until_deletion(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    before = await running(api, namespace, provider, GPU)
    kind = UPSTREAM[provider]

    async with held(api, kind, namespace):
        await put(api, namespace, "model/id", "org/other")
        await until(api, kind, "m", namespace, deleting)
        waiting = await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: "being deleted" in message(obj, "ResourceCreated"),
        )
        assert reason(waiting, "ResourceCreated") == "Recreating"
        assert phase(waiting) != "Running"
        assert waiting["status"]["endpoint"]["service"] == ENDPOINTS[provider]
        old = await api.get(kind, "m", namespace)
        assert old["metadata"]["uid"] == before["metadata"]["uid"]

    new = await until(
        api,
        kind,
        "m",
        namespace,
        lambda obj: obj is not None and obj["metadata"]["uid"] != before["metadata"]["uid"],
    )
    assert new is not None
    assert "org/other" in str(new)
    made = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
    )
    assert phase(made) == "Running" or "endpoint" not in made["status"]


async def test_several_changes_while_waiting_need_one_new_object(
    suite: Suite, api: Client, namespace: str
) -> None:
    before = await running(api, namespace, "dynamo", GPU)
    kind = UPSTREAM["dynamo"]

    async with held(api, kind, namespace):
        await put(api, namespace, "model/id", "org/second")
        await until(api, kind, "m", namespace, deleting)
        await put(api, namespace, "model/id", "org/third")
        last = await put(api, namespace, "scaling/replicas", 3)
        # The provider hears of it before it hears that the old one is gone.
        await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: (
                (find(obj["status"]["conditions"], "ResourceCreated") or {}).get("observedGeneration")
                == last["metadata"]["generation"]
            ),
        )

    settled = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            phase(obj) == "Running"
            and obj["status"]["observedGeneration"] == last["metadata"]["generation"]
            and obj["status"]["replicas"]["ready"] == 3
        ),
    )
    assert settled
    new = await api.get(kind, "m", namespace)
    assert "org/third" in str(runs(new))
    assert runs(new)["VllmWorker"]["replicas"] == 3
    assert suite.plane.audit_log is not None
    created = [
        entry
        for entry in requests_by_user(suite.plane.audit_log)
        if entry.get("objectRef", {}).get("resource") == kind.plural
        and entry["objectRef"].get("namespace") == namespace
        and entry["responseStatus"].get("code") == 201
        and "dryRun" not in entry["requestURI"]
    ]
    assert len(created) == 2
    assert new["metadata"]["uid"] != before["metadata"]["uid"]


async def test_change_back_while_waiting_is_honoured(suite: Suite, api: Client, namespace: str) -> None:
    before = await running(api, namespace, "kaito", TEMPLATE)
    kind = UPSTREAM["kaito"]

    async with held(api, kind, namespace):
        await put(api, namespace, "image", "example.com/vllm:2.0.0")
        await until(api, kind, "m", namespace, deleting)
        back = await put(api, namespace, "image", TEMPLATE["image"])

    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            phase(obj) == "Running"
            and obj["status"]["observedGeneration"] == back["metadata"]["generation"]
            and reason(obj, "ResourceCreated") == "ResourceCreated"
        ),
        seconds=300,
    )
    live = await api.get(kind, "m", namespace)
    assert live["metadata"]["uid"] != before["metadata"]["uid"]
    assert runs(live) == runs(before)


POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-evil-models}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
    resourceRules:
      - {apiGroups: [nvidia.com], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: ["*"]}
  validations:
    - expression: "!object.spec.services.VllmWorker.extraPodSpec.mainContainer.args.exists(a, a == 'org/evil')"
      message: "evil models are not served here"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-evil-models}
spec: {policyName: no-evil-models, validationActions: [Deny]}
"""


@pytest.mark.needs_kubernetes("1.30", "ValidatingAdmissionPolicy")
async def test_refused_new_object_leaves_the_old_one_serving(
    suite: Suite, api: Client, namespace: str
) -> None:
    before = await running(api, namespace, "dynamo", GPU)
    suite.plane.kubectl("apply", "-f", "-", input=POLICY.replace("NAMESPACE", namespace))
    evil = json.loads(json.dumps(before["spec"]).replace("org/model", "org/evil"))
    await refuses(api, namespace, evil, "evil")

    await put(api, namespace, "model/id", "org/evil")

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
    )
    assert "evil models are not served here" in message(refused, "ResourceCreated")
    assert phase(refused) == "Running"
    assert refused["status"]["endpoint"]["service"] == "m-frontend"
    live = await api.get(UPSTREAM["dynamo"], "m", namespace)
    assert live["metadata"]["uid"] == before["metadata"]["uid"]
    assert not deleting(live)

    await put(api, namespace, "model/id", "org/good")

    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: phase(obj) == "Running" and reason(obj, "ResourceCreated") == "ResourceCreated",
    )
    new = await until(api, UPSTREAM["dynamo"], "m", namespace, lambda obj: "org/good" in str(runs(obj)))
    assert new is not None
    assert new["metadata"]["uid"] != before["metadata"]["uid"]
    suite.plane.kubectl("delete", "-f", "-", input=POLICY)


async def refuses(api: Client, namespace: str, spec: Object, words: str) -> None:
    """Asks until a graph is refused so: the API server takes policies up some time after it has stored them."""
    probe = {
        "apiVersion": UPSTREAM["dynamo"].api_version,
        "kind": UPSTREAM["dynamo"].kind,
        "metadata": {"name": "probe", "namespace": namespace},
        "spec": spec,
    }
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await api.create(UPSTREAM["dynamo"], probe, manager="test", dry_run=True)
            except ApiError as refused:
                assert words in refused.message
                return
            await asyncio.sleep(0.1)
