"""Deleting a model that serves while core does not answer, or does not run: only the provider is needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

import pytest

from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU
from support.edits import running
from support.finalizers import hold, let_go
from support.kinds import UPSTREAM
from support.restarts import frozen, stopped
from support.suites import running_suite
from support.waiting import message, phase, until, until_deployment

pytestmark = pytest.mark.integration

DOWN: Final = {"frozen": frozen, "stopped": stopped}

LIMIT: Final = 30.0
"""Seconds of a deletion, at most. Before Kubernetes 1.28, the removal of the finalizer waits 2 s for each of the two
webhooks of a frozen core. The rest is for a busy machine; a stuck deletion takes 300 s (`--finalizer-timeout`)."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """The suite with the time-outs of the webhooks that a cluster has."""
    with running_suite(tmp_path_factory.mktemp("suite"), *UPSTREAM) as made:
        made.webhook_timeout = 2
        made.start()
        yield made


@pytest.mark.parametrize("provider", UPSTREAM)
@pytest.mark.parametrize("down", DOWN.values(), ids=DOWN)
async def test_deletion_ends_without_core(
    suite: Suite,
    api: Client,
    namespace: str,
    down: Callable[[Component], AbstractContextManager[None]],
    provider: str,
) -> None:
    kind = UPSTREAM[provider]
    made = await running(api, namespace, GPU, provider)

    with down(suite.components["core"]):
        start = time.monotonic()
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])
        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
        await until(api, kind, "m", namespace, lambda obj: obj is None)
        taken = time.monotonic() - start

    assert taken < LIMIT


@pytest.mark.parametrize("down", DOWN.values(), ids=DOWN)
async def test_held_deletion_is_reported_without_core(
    suite: Suite, api: Client, namespace: str, down: Callable[[Component], AbstractContextManager[None]]
) -> None:
    kind = UPSTREAM["kuberay"]
    made = await running(api, namespace, GPU, "kuberay")
    await hold(api, kind, namespace)

    with down(suite.components["core"]):
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])
        leaving = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Terminating")
        await let_go(api, kind, namespace)
        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)

    assert message(leaving, "ResourceCreated").startswith(f"Waiting for {kind.kind} {namespace}/m")
