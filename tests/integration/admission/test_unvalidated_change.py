"""A change that core has not validated yet changes nothing in the provider's report."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.edits import running
from support.kinds import UPSTREAM
from support.waiting import reason, until, until_deployment
from support.wishes import change_spec

pytestmark = pytest.mark.integration


@pytest.fixture
def without_core(suite: Suite) -> Iterator[Suite]:
    """The suite, whose core may be stopped; it runs again afterwards."""
    yield suite
    suite.start("core")


async def test_unvalidated_change_is_reported_until_core_validates(
    without_core: Suite, api: Client, namespace: str
) -> None:
    kind = UPSTREAM["dynamo"]
    await running(api, namespace, GPU, "dynamo", "other")
    body = model_deployment(
        "m", namespace, GPU, provider="dynamo", annotations={names.DRY_RUN_ANNOTATION: "true"}
    )
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    before = await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated"))
    without_core.components["core"].stop()

    await change_spec(api, namespace, "/spec/nodeSelector", {"zone": "a"})

    # The turn of that change is over when a later one has had its effect.
    standing = await api.get(kind, "other", namespace)
    await api.delete(kind, "other", namespace, uid=standing["metadata"]["uid"])
    uid = standing["metadata"]["uid"]
    await until(api, kind, "other", namespace, lambda obj: obj is not None and obj["metadata"]["uid"] != uid)
    now = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert now["metadata"]["generation"] == 2
    assert now["status"] == before["status"]
