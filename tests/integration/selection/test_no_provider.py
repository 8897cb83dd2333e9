"""An empty `status.provider.name`: the selector has not decided, and the serving model keeps running."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._api.names import SELECTOR_MANAGER
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.kinds import GRAPHS
from support.waiting import phase, reason, serves, until_deployment

pytestmark = pytest.mark.integration


@pytest.fixture
def selector_stopped_later(suite: Suite) -> Iterator[None]:
    """The test stops the selector; it runs again afterwards."""
    yield
    suite.start("selector")


async def test_removed_provider_name_moves_nothing(
    suite: Suite, selector_stopped_later: None, api: Client, namespace: str
) -> None:
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="test")
    before = await until_deployment(api, "m", namespace, serves)
    assert before["status"]["provider"]["name"] == "dynamo"
    upstream = await api.get(GRAPHS, "m", namespace)
    suite.components["selector"].stop()
    log = AuditLog(suite)

    released = {key: before[key] for key in ("apiVersion", "kind")}
    released["metadata"] = {key: before["metadata"][key] for key in ("name", "namespace", "uid")}
    await api.apply_status(MODEL_DEPLOYMENTS, released, manager=SELECTOR_MANAGER)

    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ProviderSelected") == "NoSelector")
    # Turns are taken in order: when a later one is done, so is what the provider had to do here.
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("later", namespace, GPU, provider="dynamo"), manager="test"
    )
    await until_deployment(api, "later", namespace, lambda obj: phase(obj) == "Running")
    after = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert "name" not in after["status"]["provider"]
    assert after["metadata"]["finalizers"] == before["metadata"]["finalizers"]
    assert (phase(after), after["status"]["endpoint"]) == ("Running", before["status"]["endpoint"])
    assert await api.get(GRAPHS, "m", namespace) == upstream
    providers = [
        entry["requestURI"]
        for component, entry in log.all(namespace)
        if component.startswith("provider-") and entry["objectRef"].get("name") == "m"
    ]
    assert providers == []
    suite.start("selector")

    again = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderSelected") == "AutoSelected"
    )
    assert again["status"]["provider"]["name"] == "dynamo"
    assert await api.get(GRAPHS, "m", namespace) == upstream
