"""A dry run shows what would be created, creates nothing, and does not delay the real run."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.write import manifest
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.edits import running, until_upstream
from support.events import notes
from support.kinds import UPSTREAM
from support.waiting import SECONDS, message, phase, reason, serves, until_deployment
from support.wishes import annotate, change_spec

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_dry_run_shows_the_object(suite: Suite, api: Client, namespace: str, provider: str) -> None:
    kind = UPSTREAM[provider]
    await api.create(MODEL_DEPLOYMENTS, dry(namespace, provider), manager="test")

    shown = await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated"))

    assert reason(shown, "ResourceCreated") == "DryRun"
    assert message(shown, "ResourceCreated") == (
        f"Dry run: {kind.kind} 'm' would be created; remove annotation kubefoundry.ai/dry-run to apply"
    )
    assert (phase(shown), reason(shown, "Ready")) == ("Pending", "Progressing")
    found = result(shown)
    assert (found["accepted"], found["message"]) == (True, f"{kind.kind} 'm' would be created")
    assert [obj["kind"] for obj in found["objects"]][-1] == kind.kind
    assert names.APPLIED_ANNOTATION not in json.dumps(found["objects"])
    assert "finalizers" not in shown["metadata"]
    await nothing_exists(api, namespace, provider)

    await annotate(api, namespace, names.DRY_RUN_ANNOTATION, None)

    applied = await until_deployment(api, "m", namespace, serves)
    assert names.DRY_RUN_RESULT_ANNOTATION not in (applied["metadata"].get("annotations") or {})
    assert applied["metadata"]["finalizers"] == [f"kubefoundry.ai/{provider}-provider"]
    live = await api.get(kind, "m", namespace)
    record = manifest.applied(live)
    assert record is not None
    assert record.manifest == found["objects"][-1]


async def test_dry_run_comes_to_rest(suite: Suite, api: Client, namespace: str) -> None:
    log = AuditLog(suite)
    await api.create(MODEL_DEPLOYMENTS, dry(namespace, "kaito"), manager="test")
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "DryRun")

    for count in range(5):
        await annotate(api, namespace, "example.com/touched", str(count))
    await running(api, namespace, GPU, "kaito", "later")

    writes = log.writes("provider-kaito", namespace, "modeldeployments")
    mine = [entry for entry in writes if "/m?" in entry or "/m/" in entry]
    # One for the annotation, one for the status.
    assert len(mine) == 2, mine
    assert await notes(api, namespace, "DryRun") == [
        "Dry run: Workspace 'm' would be created; remove annotation kubefoundry.ai/dry-run to apply"
    ]


@pytest.mark.needs_kubernetes("1.30", "ValidatingAdmissionPolicy")
async def test_dry_run_reports_the_refusal(suite: Suite, api: Client, namespace: str) -> None:
    suite.plane.kubectl("apply", "-f", "-", input=POLICY.format(namespace=namespace))
    await policy_works(api, namespace)
    await api.create(MODEL_DEPLOYMENTS, dry(namespace, "kaito"), manager="test")

    shown = await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated"))

    suite.plane.kubectl("delete", "-f", "-", input=POLICY.format(namespace=namespace))
    assert reason(shown, "ResourceCreated") == "DryRun"
    found = result(shown)
    assert found["accepted"] is False
    assert found["message"].startswith("Workspace 'm' was refused: ")
    assert "no models in this namespace" in found["message"]
    assert found["message"] in message(shown, "ResourceCreated")
    await nothing_exists(api, namespace, "kaito")


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_dry_run_of_a_running_model_changes_nothing(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    await running(api, namespace, GPU, provider)
    before = await api.get(kind, "m", namespace)
    await annotate(api, namespace, names.DRY_RUN_ANNOTATION, "true")
    await until_deployment(api, "m", namespace, lambda obj: said(obj) == f"{kind.kind} 'm' would not change")

    await change_spec(api, namespace, "/spec/nodeSelector", {"zone": "a"})

    shown = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: said(obj).endswith("d be updated") or said(obj).endswith("d be recreated"),
    )
    assert result(shown)["accepted"] is True
    assert '"zone": "a"' in shown["metadata"]["annotations"][names.DRY_RUN_RESULT_ANNOTATION]
    assert shown["metadata"]["finalizers"] == [f"kubefoundry.ai/{provider}-provider"]
    assert phase(shown) == "Running"
    during = await api.get(kind, "m", namespace)
    assert (during["metadata"]["uid"], during["metadata"]["generation"]) == (
        before["metadata"]["uid"],
        before["metadata"]["generation"],
    )

    await annotate(api, namespace, names.DRY_RUN_ANNOTATION, None)

    await until_upstream(api, kind, namespace, lambda obj: '"zone": "a"' in json.dumps(obj))
    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            names.DRY_RUN_RESULT_ANNOTATION not in (obj["metadata"].get("annotations") or {})
            and reason(obj, "ResourceCreated") == "ResourceCreated"
        ),
    )


async def test_outdated_dry_run_result_is_removed(suite: Suite, api: Client, namespace: str) -> None:
    await api.create(MODEL_DEPLOYMENTS, dry(namespace, "dynamo"), manager="test")
    await until_deployment(api, "m", namespace, lambda obj: said(obj))

    await change_spec(api, namespace, "/spec/provider/overrides", {"frontend": {"replicas": "many"}})

    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: reason(obj, "ProviderCompatible") == "InvalidOverrides" and not said(obj),
    )


POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: no-models}}
spec:
  matchConstraints:
    namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
    resourceRules:
      - {{apiGroups: [kaito.sh], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}}
  validations: [{{expression: "false", message: "no models in this namespace"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: no-models}}
spec: {{policyName: no-models, validationActions: [Deny]}}
"""


async def policy_works(api: Client, namespace: str) -> None:
    """A policy is obeyed a moment after it is stored, and nothing of its status tells when."""
    kind = UPSTREAM["kaito"]
    probe = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "probe", "namespace": namespace},
    }
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await api.create(kind, probe, manager="test", dry_run=True)
            except ApiError as error:
                if "no models in this namespace" in error.message:
                    return
                raise
            await asyncio.sleep(PROBE)


def dry(namespace: str, provider: str, spec: dict[str, Any] = GPU) -> Object:
    return model_deployment(
        "m", namespace, spec, provider=provider, annotations={names.DRY_RUN_ANNOTATION: "true"}
    )


def result(obj: Object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(obj["metadata"]["annotations"][names.DRY_RUN_RESULT_ANNOTATION])
    return found


def said(obj: Object) -> str:
    """The message of the dry run's result, empty where there is none."""
    text = (obj["metadata"].get("annotations") or {}).get(names.DRY_RUN_RESULT_ANNOTATION)
    return str(json.loads(text)["message"]) if text else ""


async def nothing_exists(api: Client, namespace: str, provider: str) -> None:
    for kind, allowed in ((UPSTREAM[provider], set()), (CONFIG_MAPS, {"kube-root-ca.crt"})):
        items, _ = await api.list(kind, namespace)
        assert {obj["metadata"]["name"] for obj in items} <= allowed
