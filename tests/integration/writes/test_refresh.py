"""The annotation that asks for a new render (after an upgrade: test_upgrade)."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.edits import running, until_upstream
from support.kinds import UPSTREAM
from support.waiting import message, phase, reason, until_deployment
from support.wishes import annotate

pytestmark = pytest.mark.integration


async def test_refresh_recreates_a_failed_upstream_object(suite: Suite, api: Client, namespace: str) -> None:
    """KubeRay looks at no edit after an InitializingTimeout."""
    fail = {"kubefoundry.ai/simulator-fail": "initializing-timeout"}
    body = model_deployment("m", namespace, GPU, provider="kuberay", labels=fail)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    failed = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Failed")
    assert "set the annotation kubefoundry.ai/refresh" in message(failed, "Ready")
    given_up = await api.get(UPSTREAM["kuberay"], "m", namespace)

    await annotate(api, namespace, names.REFRESH_ANNOTATION, "1")

    def recreated(obj: Object) -> bool:
        return bool(obj["metadata"]["uid"] != given_up["metadata"]["uid"])

    again = await until_upstream(api, UPSTREAM["kuberay"], namespace, recreated)
    # What was wrong is corrected: any change will do.
    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: phase(obj) == "Failed" and reason(obj, "ResourceCreated") == "ResourceCreated",
    )
    corrected = [{"op": "remove", "path": "/metadata/labels/kubefoundry.ai~1simulator-fail"}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, corrected, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    served = await api.get(UPSTREAM["kuberay"], "m", namespace)
    assert served["metadata"]["uid"] != again["metadata"]["uid"]


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_refresh_without_news_restarts_nothing(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    await running(api, namespace, GPU, provider)
    before = await api.get(kind, "m", namespace)
    log = AuditLog(suite)

    await annotate(api, namespace, names.REFRESH_ANNOTATION, "1")

    def mark(obj: Object) -> str:
        return str(obj["metadata"]["annotations"][names.APPLIED_ANNOTATION])

    after = await until_upstream(api, kind, namespace, lambda obj: mark(obj) != mark(before))
    await running(api, namespace, GPU, provider, "later")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    writes = log.writes(f"provider-{provider}", namespace, kind.plural)
    assert len([entry for entry in writes if "/m?" in entry]) == 1
