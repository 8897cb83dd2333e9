"""The logs tell the story of a model: one filter by its namespace and name shows what happened to it, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.deployments import GPU, model_deployment
from support.events import until_event
from support.waiting import serves, until_deployment

pytestmark = pytest.mark.integration


Line = dict[str, Any]


def story(suite: Suite, namespace: str) -> Iterator[tuple[str, Line]]:
    """Yield the lines about the model `m` in the logs of all components, each with the component's name."""
    for name, component in suite.components.items():
        for text in component.log.read_text().splitlines():
            line: Line = json.loads(text)
            if (line.get("namespace"), line.get("name")) == (namespace, "m"):
                yield name, line


async def test_logs_tell_the_story_of_a_model(suite: Suite, api: Client, namespace: str) -> None:
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="test")
    serving = await until_deployment(api, "m", namespace, serves)
    too_low = [{"op": "add", "path": "/spec/resources/cpuLimit", "value": "0"}]
    with pytest.raises(ApiError) as refused:
        await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, too_low, manager="test")

    # It is sent after the line about it, which is the last one.
    await until_event(api, namespace, "DeploymentReady")
    told = list(story(suite, namespace))

    provider = serving["status"]["provider"]["name"]
    assert refused.value.code == 422
    for component, part in (
        ("core", {"message": "status changed", "phase": "Pending"}),
        ("selector", {"message": "status changed", "provider": provider}),
        (provider, {"message": "upstream object created"}),
        (provider, {"message": "status changed", "phase": "Running"}),
        (provider, {"message": "event", "reason": "DeploymentReady"}),
        ("core", {"message": "refused", "generation": 2, "user": "devcluster-admin"}),
    ):
        about = {"kind": "ModelDeployment", "generation": 1} | part
        assert any(name == component and about.items() <= line.items() for name, line in told), about
