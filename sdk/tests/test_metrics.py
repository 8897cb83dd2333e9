"""The metrics of every component, and their names in client-go and controller-runtime."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import REGISTRY

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._runtime.leadership import Leadership
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.workqueue import WorkQueue
from support.waiting import SECONDS
from support.wire import ok, refusal, wire


def value(name: str, /, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


@pytest.mark.parametrize(
    ("label", "again", "error", "result"),
    [
        pytest.param("ends", None, None, "success", id="success"),
        pytest.param("again", 60.0, None, "requeue_after", id="again"),
        pytest.param("fails", None, Unreachable("gone"), "error", id="error"),
    ],
)
async def test_reconcile_has_the_names_of_go(
    label: str, again: float | None, error: Exception | None, result: str
) -> None:
    done = asyncio.Event()

    async def reconcile(key: Key) -> float | None:
        running = value("workqueue_longest_running_processor_seconds", name=label)
        assert running is not None and running > 0
        done.set()
        if error:
            raise error
        return again

    queue = WorkQueue(label, reconcile)
    queue.add(("n", "a"))
    assert value("workqueue_depth", name=label) == 1

    task = asyncio.create_task(queue.run(1))
    async with asyncio.timeout(SECONDS):
        await done.wait()
    # The worker goes on without a wait until the queue is empty.
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert value("workqueue_depth", name=label) == 0
    assert value("workqueue_adds_total", name=label) == 1
    assert value("workqueue_queue_duration_seconds_count", name=label) == 1
    assert value("workqueue_work_duration_seconds_count", name=label) == 1
    assert value("controller_runtime_reconcile_time_seconds_count", controller=label) == 1
    assert value("controller_runtime_reconcile_total", controller=label, result=result) == 1
    failures = 1 if error else 0
    assert value("controller_runtime_reconcile_errors_total", controller=label) == failures
    assert value("workqueue_retries_total", name=label) == failures


async def test_request_is_counted_by_code_and_method() -> None:
    async with wire(lambda asked: ok() if asked.method == "DELETE" else refusal(403, "Forbidden")) as api:
        host = api.client.server.removeprefix("http://")
        await api.client.delete(MODEL_DEPLOYMENTS, "m", "n", uid="u")
        with pytest.raises(ApiError):
            await api.client.get(MODEL_DEPLOYMENTS, "m", "n")

    assert value("rest_client_requests_total", code="200", method="DELETE", host=host) == 1
    assert value("rest_client_requests_total", code="403", method="GET", host=host) == 1


async def test_request_without_a_response_is_counted() -> None:
    lost = {"code": "<error>", "method": "GET", "host": "127.0.0.1:1"}
    before = value("rest_client_requests_total", **lost) or 0
    async with Client(Credentials("http://127.0.0.1:1", None, lambda: None), user_agent="test") as client:
        with pytest.raises(Unreachable):
            await client.get(MODEL_DEPLOYMENTS, "m", "n")

    assert value("rest_client_requests_total", **lost) == before + 1


def stored(lease: dict[str, Any]) -> dict[str, Any]:
    return {**lease, "metadata": {**lease["metadata"], "resourceVersion": "1"}}


async def test_leader_is_reported_while_the_lease_is_held() -> None:
    lease = "kubefoundry-measured"
    async with wire(
        lambda asked: refusal(404, "NotFound") if asked.method == "GET" else ok(stored(asked.body))
    ) as api:
        leadership = Leadership(lease, elected=True)
        task = asyncio.create_task(leadership.run(api.client, namespace="n", identity="me"))
        async with asyncio.timeout(SECONDS):
            await leadership.leading.wait()
        assert value("leader_election_master_status", name=lease) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert value("leader_election_master_status", name=lease) == 0
