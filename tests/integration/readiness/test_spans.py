"""Spans of all components about one generation of a model, as a collector receives them."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU
from support.edits import create_model
from support.restarts import restarted
from support.trace_collector import Collector, Span, trace_collector
from support.waiting import serves, until_deployment

pytestmark = pytest.mark.integration

COMPONENTS = ("core", "selector", "kaito")
SERVICES = {"kubefoundry-core", "kubefoundry-selector", "kubefoundry-provider-kaito"}


def about(collector: Collector, uid: str) -> list[Span]:
    return [span for span in collector.spans if span.attributes.get("kubefoundry.object.uid") == uid]


async def test_components_link_their_spans_by_generation(suite: Suite, api: Client, namespace: str) -> None:
    async with trace_collector() as collector:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
        with ExitStack() as changed:
            for name in COMPONENTS:
                await asyncio.to_thread(changed.enter_context, restarted(suite.components[name], variables))
            model = await create_model(api, namespace, GPU, "kaito")
            await until_deployment(api, "m", namespace, serves)
            # The last spans are sent when the processes end.
            await asyncio.to_thread(changed.close)
        spans = about(collector, model["metadata"]["uid"])

    assert {span.service for span in spans} == SERVICES
    assert {span.name for span in spans} == {"reconcile"}
    assert {span.attributes["kubefoundry.object.generation"] for span in spans} == {1}
    assert len({link for span in spans for link in span.links}) == 1
