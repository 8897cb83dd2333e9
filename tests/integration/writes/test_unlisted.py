"""An upstream kind is installed but cannot be listed, because its conversion webhook is down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from kubefoundry_local.suite import Suite, end
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.registrations import until_upstream
from support.restarts import restarted
from support.suites import running_suite
from support.upgrades import dynamo_stored_as_v1beta1, upgrade
from support.waiting import message, phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

WORDS = "DynamoGraphDeployment objects cannot be listed: 500"


@pytest.fixture
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core, selector, provider dynamo and its simulated operator, which converts."""
    with running_suite(tmp_path_factory.mktemp("unlisted"), "dynamo", simulator_flags=["--webhooks"]) as made:
        made.start("core", "selector", "dynamo")
        yield made


@pytest.fixture
async def unlisted(suite: Suite, api: Client, namespace: str) -> AsyncIterator[None]:
    """The model `m` serves since before the CRD moved to another version, and nothing converts now."""
    await create(api, namespace, "m", provider="dynamo")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    [operator] = suite.simulators
    end(operator)
    suite.simulators.clear()
    await upgrade(api, dynamo_stored_as_v1beta1())
    yield
    if not suite.simulators:
        suite.simulate("dynamo", flags=["--webhooks"])


async def test_unlisted_kind_is_reported_on_the_provider_and_on_models(
    suite: Suite, unlisted: None, api: Client, namespace: str
) -> None:
    with restarted(suite.components["dynamo"], {}):  # the restarted process has never listed the objects
        registration = await until_upstream(api, "dynamo", "ListFailed")
        assert registration["status"]["ready"] is False
        assert WORDS in message(registration, "UpstreamReady")

        stale = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "StaleStatus") is not None
        )
        assert (phase(stale), WORDS in message(stale, "StaleStatus")) == ("Running", True)
        await create(api, namespace, "named", provider="dynamo")
        named = await until_deployment(
            api, "named", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyFailed"
        )
        assert WORDS in named["status"]["message"]
        await create(api, namespace, "automatic")
        automatic = await until_deployment(
            api, "automatic", namespace, lambda obj: reason(obj, "ProviderSelected") is not None
        )
        assert automatic["status"].get("provider", {}).get("name") is None
        assert "dynamo" in message(automatic, "ProviderSelected")

        suite.simulate("dynamo", flags=["--webhooks"])

        await until_upstream(api, "dynamo", "SchemaSupported")
        for name in ("m", "named", "automatic"):
            serves = await until_deployment(
                api,
                name,
                namespace,
                lambda obj: phase(obj) == "Running" and reason(obj, "StaleStatus") is None,
            )
            assert serves["status"]["provider"]["name"] == "dynamo"


async def test_deleted_model_names_the_list_that_fails(
    suite: Suite, unlisted: None, api: Client, namespace: str
) -> None:
    with restarted(suite.components["dynamo"], {}):
        await until_upstream(api, "dynamo", "ListFailed")

        made = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

        waiting = await until_deployment(api, "m", namespace, lambda obj: WORDS in obj["status"]["message"])
        assert phase(waiting) == "Terminating"
        upstream = f"DynamoGraphDeployment {namespace}/m"
        assert waiting["status"]["message"].startswith(f"Waiting for {upstream} to be deleted. ")
        suite.simulate("dynamo", flags=["--webhooks"])
        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)


async def create(api: Client, namespace: str, name: str, **given: str) -> None:
    await api.create(MODEL_DEPLOYMENTS, model_deployment(name, namespace, GPU, **given), manager="test")
