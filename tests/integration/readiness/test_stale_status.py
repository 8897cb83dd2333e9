"""StaleStatus names an operator that does not answer, and none that takes long or has nothing to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from kubefoundry_local.suite import Suite, end
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.events import until_event
from support.kinds import UPSTREAM
from support.suites import running_suite
from support.waiting import message, phase, reason, serves, until, until_deployment

pytestmark = pytest.mark.integration

STALE = "2"
"""Seconds, in place of 5 minutes."""

LOADING = {"kaito": "unschedulable", "dynamo": "not-ready", "kuberay": "loading"}
"""What keeps a model of each provider loading (the simulated operators' label)."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core, providers and simulated operators, whose silence is reported soon."""
    folder = tmp_path_factory.mktemp("stale")
    with running_suite(folder, *UPSTREAM) as made:
        for provider in UPSTREAM:
            made.install(provider, environment={"KUBEFOUNDRY_STALE_AFTER": STALE})
        made.start("core", *UPSTREAM)
        yield made


@asynccontextmanager
async def without_operators(suite: Suite) -> AsyncIterator[None]:
    """For the time of the block nobody looks after upstream objects."""
    end(suite.simulators.pop())
    try:
        yield
    finally:
        suite.simulate(*UPSTREAM)


async def create(api: Client, namespace: str, name: str, provider: str, *, fail: str = "") -> None:
    labels = {"kubefoundry.ai/simulator-fail": fail} if fail else {}
    body = model_deployment(name, namespace, GPU, provider=provider, labels=labels)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_only_an_unanswered_edit_is_stale(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    await create(api, namespace, "idle", provider)
    await until_deployment(api, "idle", namespace, lambda obj: phase(obj) == "Running")
    await create(api, namespace, "loading", provider, fail=LOADING[provider])
    await until(api, UPSTREAM[provider], "loading", namespace, answered)
    await until_deployment(api, "loading", namespace, lambda obj: phase(obj) == "Deploying")

    async with without_operators(suite):
        await create(api, namespace, "silent", provider)
        stale = await until_deployment(
            api, "silent", namespace, lambda obj: reason(obj, "StaleStatus") is not None
        )
        assert reason(stale, "StaleStatus") == "NoUpstreamProgress"
        assert "check that its operator runs" in message(stale, "StaleStatus")
        await until_event(api, namespace, "NoUpstreamProgress", lambda note: "'silent'" in note)
        # Nothing has happened to these for longer.
        for name, expected in (("idle", "Running"), ("loading", "Deploying")):
            quiet = await api.get(MODEL_DEPLOYMENTS, name, namespace)
            assert (phase(quiet), reason(quiet, "StaleStatus")) == (expected, None)

    served = await until_deployment(api, "silent", namespace, serves)
    assert reason(served, "StaleStatus") is None


def answered(upstream: Object | None) -> bool:
    """Whether its operator has taken it up."""
    return bool(upstream and (upstream.get("status") or {}).get("conditions"))
