"""A clean-up that does not end in time drops the finalizer and names the objects that remain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, NAMESPACES, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.events import until_event
from support.finalizers import hold
from support.kinds import UPSTREAM
from support.restarts import uninstalled
from support.roles import without
from support.suites import running_suite
from support.waiting import message, phase, until, until_deployment

pytestmark = pytest.mark.integration

EVERY = pytest.mark.parametrize("provider", UPSTREAM)
PATIENCE = {"KUBEFOUNDRY_FINALIZER_TIMEOUT": "5"}
"""Seconds, in place of 5 minutes: within them the provider has to say what it waits for."""

GARBAGE = 300.0
"""Bound on what the garbage collector has to do first, which learns of new kinds every 30 s only."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core, providers and simulated operators; finalizers go soon."""
    with running_suite(tmp_path_factory.mktemp("timeout"), *UPSTREAM) as made:
        for name in ("core", *UPSTREAM):
            made.install(name, environment=PATIENCE)
        made.start("core", *UPSTREAM)
        yield made


@EVERY
async def test_timeout_names_an_upstream_object_that_does_not_go(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    made = await create_running(api, namespace, provider)
    await hold(api, kind, namespace)

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Terminating")
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    reported = await until_event(api, namespace, "FinalizerTimeout")
    assert reported == (
        f"Finalizer removed after timeout, provider resource may be orphaned: {kind.kind} {namespace}/m; "
        "held by finalizer example.com/held-by-the-test"
    )


@EVERY
async def test_timeout_names_a_provider_that_may_not_delete(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    made = await create_running(api, namespace, provider)

    with without(suite.plane, f"provider-{provider}", kind.crd, "delete"):
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

        leaving = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Terminating")
        assert "The upstream objects could not be deleted: " in message(leaving, "ResourceCreated")
        assert f'cannot delete resource "{kind.plural}"' in message(leaving, "ResourceCreated")
        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
        reported = await until_event(api, namespace, "FinalizerTimeout")
        assert f'cannot delete resource "{kind.plural}"' in reported


@EVERY
async def test_timeout_names_a_provider_that_cannot_list(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    made = await create_running(api, namespace, provider)
    component = suite.components[provider]
    component.stop()
    with without(suite.plane, f"provider-{provider}", kind.crd, "list", "watch"):
        component.start()

        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
        reported = await until_event(api, namespace, "FinalizerTimeout")
        assert f"{kind.kind} {namespace}/m (unknown: {kind.crd} cannot be listed)" in reported
    component.wait_ready()


async def test_namespace_of_uninstalled_providers_is_deleted(
    suite: Suite, api: Client, namespace: str
) -> None:
    for provider in UPSTREAM:
        await create_running(api, namespace, provider, name=provider)

    with ExitStack() as without_providers:
        for provider in UPSTREAM:
            without_providers.enter_context(uninstalled(suite, provider, PATIENCE))
        suite.plane.kubectl("delete", "namespace", namespace, "--wait=false")

        await until(api, NAMESPACES, namespace, None, lambda obj: obj is None, seconds=GARBAGE)


async def test_timeout_names_an_uninstalled_provider(suite: Suite, api: Client, namespace: str) -> None:
    made = await create_running(api, namespace, "dynamo")

    with uninstalled(suite, "dynamo", PATIENCE):
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
        reported = await until_event(api, namespace, "FinalizerTimeout")
        assert f"DynamoGraphDeployment {namespace}/m" in reported
        # What the finalizer stood for, the garbage collector does.
        await until(api, UPSTREAM["dynamo"], "m", namespace, lambda obj: obj is None, seconds=GARBAGE)


async def create_running(api: Client, namespace: str, provider: str, name: str = "m") -> Object:
    made = await api.create(
        MODEL_DEPLOYMENTS, model_deployment(name, namespace, GPU, provider=provider), manager="test"
    )
    await until_deployment(api, name, namespace, lambda obj: phase(obj) == "Running")
    return made
