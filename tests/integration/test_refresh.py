"""The annotation that asks for a new render (what it brings after an upgrade: test_upgrade)."""

from __future__ import annotations

import pytest

from kubefoundry_demo.suite import Suite
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU
from support.edits import running, until_upstream
from support.kinds import UPSTREAM
from support.wishes import annotate

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_a_refresh_that_brings_nothing_new_is_noted_and_restarts_nothing(
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
