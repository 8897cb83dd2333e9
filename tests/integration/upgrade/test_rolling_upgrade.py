"""A rolling upgrade of every component under models that serve, edits and reviews."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.admission import BY_WEBHOOK, REFUSED_BY_WEBHOOK, refusal
from support.chaos.state import served
from support.core_service import Service, service
from support.kinds import UPSTREAM
from support.model_writes import PROVIDERS, log_size, upstream_objects, upstream_writes
from support.played_pods import node
from support.replicas import second_replicas
from support.serving_models import create_model, create_models, until_running
from support.suites import running_suite
from support.waiting import until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.apart]

MODELS = 100

EDITED = "edited-direct"

COMPONENTS = ("core", "selector", *PROVIDERS)

LATE = 1.0
"""Seconds by which the Service learns of the end of a pod after the pod itself."""


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    with running_suite(tmp_path, *UPSTREAM, plane_flags=["--all-controllers"]) as made:
        yield made


@dataclass(slots=True)
class Traffic:
    """What users sent during the upgrade.

    Attributes:
        edits: The edits of one model that were stored.
        reviews: The specs that core refused, as it should.
        wrong: The errors of edits, and specs that were taken without a review.
    """

    edits: int = 0
    reviews: int = 0
    wrong: list[str] = field(default_factory=list)


@asynccontextmanager
async def traffic(api: Client, namespace: str) -> AsyncIterator[Traffic]:
    """Edit a model and try invalid ones without a pause while the block runs."""
    made, stop = Traffic(), asyncio.Event()

    async def edit() -> None:
        while not stop.is_set():
            value = [{"op": "add", "path": "/spec/scaling", "value": {"replicas": 1 + made.edits % 2}}]
            try:
                await api.json_patch(MODEL_DEPLOYMENTS, EDITED, namespace, value, manager="user")
            except ApiError as error:
                made.wrong.append(str(error))
            made.edits += 1

    async def review() -> None:
        while not stop.is_set():
            answer = await refusal(api, namespace, REFUSED_BY_WEBHOOK)
            if not answer.startswith(BY_WEBHOOK):
                made.wrong.append(answer or "a model was taken without a review")
            made.reviews += 1

    async with asyncio.TaskGroup() as group:
        for work in (edit, review, review):
            group.create_task(work())
        try:
            yield made
        finally:
            stop.set()


async def test_models_serve_on_and_each_review_is_answered(
    suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    async with core_behind_service(suite) as endpoints:
        await asyncio.to_thread(suite.start, *COMPONENTS)
        models = await create_models(api, namespace, MODELS)
        await create_model(api, namespace, EDITED, "direct")
        async with node(api, namespace):
            await until_running(api, namespace, [*models, EDITED])
            before, start = await upstream_objects(api, namespace), log_size(suite)
            # Until core was ready for the first time, no Service would have led to it.
            endpoints.refused = 0
            with ExitStack() as new:
                async with traffic(api, namespace) as sent:
                    for name in COMPONENTS:
                        await replace(suite, name, endpoints, new, tmp_path)
                await until_deployment(api, EDITED, namespace, served)
                for name in models:
                    await until_deployment(api, name, namespace, served)
                after = await upstream_objects(api, namespace)
            written = upstream_writes(suite, namespace, start, models)
    counts = f"{sent.edits} edits, {sent.reviews} reviews, {endpoints.refused} refused connections"
    print(f"{len(models)} models, {counts}")

    assert sent.wrong == []
    assert endpoints.refused == 0
    assert written == []
    assert {key: after.get(key) for key in before if key[1] in models} == {
        key: value for key, value in before.items() if key[1] in models
    }


@asynccontextmanager
async def core_behind_service(suite: Suite) -> AsyncIterator[Service]:
    """Install core at another port than that of its webhooks, which the Service takes."""
    port = free_port()
    suite.install(
        "core", environment={"KUBEFOUNDRY_WEBHOOK_PORT": str(port), "KUBEFOUNDRY_SHUTDOWN_DELAY": "2s"}
    )
    url = suite.plane.kubectl(
        *("get", "validatingwebhookconfiguration", "kubefoundry-core"),
        *("-o", "jsonpath={.webhooks[0].clientConfig.url}"),
    ).stdout
    async with service(int(urlsplit(url).port or 0)) as endpoints:
        endpoints.endpoints = [port]
        yield endpoints


async def replace(suite: Suite, name: str, endpoints: Service, new: ExitStack, folder: Path) -> None:
    """Start a new replica of the component, wait until it is ready, and end the old one."""
    started = second_replicas(suite, [name], folder / f"new-{name}")
    replica = (await asyncio.to_thread(new.enter_context, started))[name]
    old = suite.components[name]
    if name == "core":
        endpoints.endpoints.append(int(replica.environment["KUBEFOUNDRY_WEBHOOK_PORT"]))
    ended = asyncio.create_task(asyncio.to_thread(old.stop))
    if name == "core":
        await asyncio.sleep(LATE)
        endpoints.endpoints.pop(0)
    assert await ended == 0
