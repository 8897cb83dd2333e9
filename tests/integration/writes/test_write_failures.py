"""A failure between a spec and its upstream object is reported, and the running model is still observed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import model_deployment
from support.events import until_event
from support.proxy import Fault, Proxy, behind
from support.suites import running_suite
from support.waiting import message, phase, reason, serves, until_deployment
from support.widgets import SPEC, WIDGETS, install_faulty, says
from support.wishes import change_spec

pytestmark = pytest.mark.integration

SERVING = {"state": "Serving", "ready": 1}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core and the example's provider, which fails on demand."""
    with running_suite(tmp_path_factory.mktemp("failures")) as made:
        install_faulty(made)
        made.start("core", "widgets")
        yield made


@pytest.fixture
async def proxy(suite: Suite, tmp_path: Path) -> AsyncIterator[Proxy]:
    async with behind(suite, "widgets", tmp_path) as made:
        yield made


def broken(fault: Fault) -> Any:
    """Of every write of a Widget."""

    def rule(request: web.Request) -> Fault | None:
        return fault if request.method == "PATCH" and request.path.endswith("/widgets/m") else None

    return rule


async def created(api: Client, namespace: str, spec: dict[str, Any] = SPEC, **metadata: Any) -> Object:
    body = model_deployment("m", namespace, spec, provider="widgets", **metadata)
    return await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def served(api: Client, namespace: str) -> Object:
    await created(api, namespace)
    await says(api, namespace, **SERVING)
    return await until_deployment(api, "m", namespace, serves)


FAULTS = pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param(Fault(500, "InternalError"), "ApplyFailed", id="a webhook that is down"),
        pytest.param(Fault(503, "ServiceUnavailable"), "ApplyFailed", id="unavailable"),
        pytest.param(Fault(409, "Conflict"), "ApplyFailed", id="a conflict again and again"),
        pytest.param(Fault(429, "TooManyRequests", retry_after=1), "ApplyFailed", id="asked to wait"),
        pytest.param(Fault(404, "NotFound"), "ApplyFailed", id="not served"),
        pytest.param(Fault(413, "RequestEntityTooLarge"), "ApplyRejected", id="too large for the API server"),
        pytest.param(
            Fault(500, "etcdserver: request is too large"), "ApplyRejected", id="too large for etcd"
        ),
    ],
)


@FAULTS
async def test_new_deployment_says_why_nothing_comes(
    suite: Suite, api: Client, namespace: str, proxy: Proxy, fault: Fault, why: str
) -> None:
    proxy.rule = broken(fault)
    await created(api, namespace)

    received = await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == why)
    assert f"made up by the test: {fault.reason}" in message(received, "ResourceCreated")
    assert f"made up by the test: {fault.reason}" in received["status"]["message"]
    assert "made up by the test" in await until_event(api, namespace, why)
    tries = proxy.answered[str(fault.code)]
    proxy.rule = lambda request: None
    assert tries <= 6, "the report of a failure is no reason to try again"

    # The user's change is tried at once, whatever is left of the wait.
    await change_spec(api, namespace, "/spec/engine/contextLength", 4096)
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
    )


async def test_serving_model_is_observed_while_its_edit_fails(
    suite: Suite, api: Client, namespace: str, proxy: Proxy
) -> None:
    await served(api, namespace)
    proxy.rule = broken(Fault(500, "InternalError"))
    await change_spec(api, namespace, "/spec/engine/contextLength", 4096)
    pending = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyFailed"
    )
    assert (phase(pending), pending["status"]["endpoint"]["service"]) == ("Running", "m")

    await says(api, namespace, state="Broken", message="all GPUs fell off")

    failed = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Failed")
    assert "endpoint" not in failed["status"]
    assert "all GPUs fell off" in failed["status"]["message"]
    assert "made up by the test" in failed["status"]["message"]


@pytest.mark.parametrize("function", ["supports", "render"])
async def test_provider_fault_is_reported_and_observing_goes_on(
    suite: Suite, api: Client, namespace: str, function: str
) -> None:
    await served(api, namespace)

    await change_spec(api, namespace, "/spec/env", [{"name": "FAULT", "value": function}])

    received = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ProviderError"
    )
    words = message(received, "ResourceCreated")
    assert words.startswith(
        f"Provider widgets failed with an internal error: ZeroDivisionError: {function} divides by zero"
    )
    assert len(words) < 500
    assert (phase(received), received["status"]["endpoint"]["service"]) == ("Running", "m")
    assert "ZeroDivisionError" in await until_event(api, namespace, "ProviderError")
    await says(api, namespace, state="Broken", message="all GPUs fell off")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Failed")


async def test_fault_before_the_first_object_is_reported(suite: Suite, api: Client, namespace: str) -> None:
    await created(api, namespace, {**SPEC, "env": [{"name": "FAULT", "value": "supports"}]})

    received = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ProviderError"
    )
    assert phase(received) == "Failed"
    await change_spec(api, namespace, "/spec/env", [])
    await says(api, namespace, **SERVING)
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")


async def test_unreadable_upstream_status_is_reported(suite: Suite, api: Client, namespace: str) -> None:
    before = await served(api, namespace)

    await says(api, namespace, state="Unreadable")

    received = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "StaleStatus") == "ProviderError"
    )
    assert "Provider widgets cannot read the status of Widget 'm': KeyError" in message(
        received, "StaleStatus"
    )
    for name in ("phase", "endpoint", "replicas"):
        assert received["status"][name] == before["status"][name]
    await says(api, namespace, state="Broken")
    failed = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Failed")
    assert find(failed["status"]["conditions"], "StaleStatus") is None


async def test_unstorable_answer_is_reported(suite: Suite, api: Client, namespace: str) -> None:
    before = await served(api, namespace)

    await says(api, namespace, state="Impossible")

    received = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "StaleStatus") == "ProviderError"
    )
    assert "observe returned phase Running with 0 ready replicas" in message(received, "StaleStatus")
    assert received["status"]["replicas"] == before["status"]["replicas"]
    assert "0 ready replicas" in await until_event(api, namespace, "ProviderError")


async def test_object_that_is_not_the_deployments_is_not_written(
    suite: Suite, api: Client, namespace: str
) -> None:
    await created(api, namespace, {**SPEC, "env": [{"name": "FAULT", "value": "name"}]})

    received = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ProviderError"
    )
    assert "Provider widgets has an error: render returned an upstream object of the name" in message(
        received, "ResourceCreated"
    )
    assert "'somebody-elses', not m" in await until_event(api, namespace, "ProviderError")
    assert (await api.list(WIDGETS, namespace=namespace))[0] == []


async def test_apply_under_the_providers_manager_is_reported(
    suite: Suite, api: Client, namespace: str
) -> None:
    body = model_deployment("m", namespace, SPEC, provider="widgets")

    await api.apply(MODEL_DEPLOYMENTS, body, manager="widgets-provider")

    received = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
    )
    assert "Field manager widgets-provider belongs to the provider" in received["status"]["message"]
    assert received["spec"]["model"]["id"] == "org/model"


async def test_dry_run_omits_objects_too_large_for_an_annotation(
    suite: Suite, api: Client, namespace: str
) -> None:
    # within a spec's bound; as JSON of ASCII alone three times as large
    large = [{"name": f"V{number}", "value": "\u00e9" * 500} for number in range(100)]

    await created(api, namespace, {**SPEC, "env": large}, annotations={"kubefoundry.ai/dry-run": "true"})

    received = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "DryRun"
    )
    result = json.loads(received["metadata"]["annotations"]["kubefoundry.ai/dry-run-result"])
    assert result["accepted"] is True
    assert result["objects"] == []
    assert "too large for an annotation" in result["omitted"]


async def test_status_published_by_hand_is_overwritten(suite: Suite, api: Client, namespace: str) -> None:
    await created(api, namespace)
    await says(api, namespace, state="Starting")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Deploying")
    by_hand = {"endpoint": {"service": "elsewhere", "port": 1}, "replicas": {"desired": 9, "ready": 9}}

    suite.plane.kubectl(
        *("patch", "md", "m", "-n", namespace, "--subresource=status", "--type=merge"),
        *("-p", json.dumps({"status": by_hand})),
    )

    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            "endpoint" not in obj["status"]
            and obj["status"]["replicas"] == {"desired": 1, "ready": 0, "available": 0}
        ),
    )


@pytest.mark.parametrize(
    ("type_", "status", "why"),
    [("StaleStatus", "True", "NoUpstreamProgress"), ("OverridesValid", "False", "Typo")],
)
@pytest.mark.parametrize(
    "at_once", [True, False], ids=["before the provider reports", "of a model that serves"]
)
async def test_warning_that_somebody_states_by_hand_is_taken_back(
    suite: Suite, api: Client, namespace: str, type_: str, status: str, why: str, at_once: bool
) -> None:
    await created(api, namespace)
    if not at_once:
        await says(api, namespace, **SERVING)
        await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")

    body = {
        "apiVersion": "kubefoundry.ai/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": "m", "namespace": namespace},
        "status": {
            "conditions": [
                {
                    "type": type_,
                    "status": status,
                    "reason": why,
                    "message": "nothing that anybody has seen",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ]
        },
    }
    await api.apply_status(MODEL_DEPLOYMENTS, body, manager="somebody")

    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: find(obj["status"]["conditions"], type_) is None and phase(obj),
    )
