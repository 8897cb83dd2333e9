"""After a provider reports, no other process still owns a part of its conditions."""

from __future__ import annotations

import pytest

from kubefoundry_core.decision import REPORTED
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import managed_fields, names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.kinds import UPSTREAM
from support.status_owners import RELEASE, is_released_by_core, owned_by
from support.waiting import until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.apart]


async def test_core_releases_what_the_provider_reports(suite: Suite, api: Client, namespace: str) -> None:
    for provider in UPSTREAM:
        body = model_deployment(provider, namespace, GPU, provider=provider)
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    for provider in UPSTREAM:
        manager = names.provider_manager(provider)

        def is_handed_over(obj: Object, manager: str = manager) -> bool:
            return owned_by(obj, manager) >= REPORTED and is_released_by_core(obj)

        deployment = await until_deployment(api, provider, namespace, is_handed_over, seconds=RELEASE)

        assert "Validated" in owned_by(deployment, names.CORE_MANAGER)
        assert managed_fields.condition_owners(deployment, "Ready") == {manager}
