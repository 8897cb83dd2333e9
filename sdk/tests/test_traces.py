"""Spans of reconciles."""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._runtime import traces
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.workqueue import WorkQueue
from support.trace_collector import Collector, Span, trace_collector
from support.waiting import SECONDS

MODEL: dict[str, Any] = {
    "kind": "ModelDeployment",
    "metadata": {"namespace": "ns", "name": "m", "uid": "u-1", "generation": 3},
}


@pytest.fixture
async def collector(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    async with trace_collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        yield collector


async def spans_of(collector: Collector, component: str, reconcile: Any) -> list[Span]:
    """Reconcile `ns/m` once in a component of that name, and return what arrived."""
    end = traces.set_up(component, "pod-1")
    done = asyncio.Event()

    async def reconciled(key: Key) -> float | None:
        try:
            await reconcile()
        finally:
            done.set()
        return None

    queue = WorkQueue(component, reconciled)
    queue.add(("ns", "m"))
    workers = asyncio.create_task(queue.run(1))
    await done.wait()
    workers.cancel()
    await asyncio.gather(workers, return_exceptions=True)
    await asyncio.to_thread(end)
    return [span for span in collector.spans if span.service == component]


async def read_model() -> None:
    logs.read(MODEL)


async def test_reconcile_is_one_span_about_its_object(collector: Collector) -> None:
    [span] = await spans_of(collector, "core", read_model)

    assert (span.name, span.failed) == ("reconcile", False)
    assert span.attributes == {
        "kubefoundry.queue": "core",
        "k8s.namespace.name": "ns",
        "kubefoundry.object.name": "m",
        "kubefoundry.object.kind": "ModelDeployment",
        "kubefoundry.object.uid": "u-1",
        "kubefoundry.object.generation": 3,
    }


async def test_spans_about_one_generation_have_the_same_link(collector: Collector) -> None:
    async def read_next_generation() -> None:
        logs.read({**MODEL, "metadata": {**MODEL["metadata"], "generation": 4}})

    [core] = await spans_of(collector, "core", read_model)
    [provider] = await spans_of(collector, "provider-kaito", read_model)
    [later] = await spans_of(collector, "selector", read_next_generation)

    assert len(core.links) == 1
    assert core.links == provider.links != later.links


async def test_failed_reconcile_is_a_failed_span(collector: Collector) -> None:
    async def refused() -> None:
        await read_model()
        raise ApiError(422, "Invalid", 'spec.env[0].value: Invalid value: "hf_secret"')

    [span] = await spans_of(collector, "core", refused)

    assert (span.failed, span.description) == (True, "ApiError")
    assert span.attributes["error.type"] == "api"


async def test_object_that_is_gone_has_no_link(collector: Collector) -> None:
    async def missing() -> None:
        pass

    [span] = await spans_of(collector, "core", missing)

    assert span.attributes["kubefoundry.object.name"] == "m"
    assert span.links == ()


async def test_silent_collector_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    connected, ended = asyncio.Event(), asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        # Until the exporter gives up.
        while await reader.read(65536):
            pass
        ended.set()
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        end = traces.set_up("core", "pod-1")
        with logs.about("ns", "m"), traces.reconcile("core"):
            pass

        await asyncio.to_thread(end)

        assert connected.is_set()
        assert not ended.is_set()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "true"},
    ],
    ids=["no collector", "empty", "disabled"],
)
def test_spans_cost_nothing_when_off(environment: dict[str, str]) -> None:
    traces.set_up("core", "pod-1", environment)()

    assert not traces.are_exported()
    assert traces.reconcile("core") is traces.OFF


def test_process_without_a_collector_imports_no_opentelemetry() -> None:
    program = (
        "import sys, kubefoundry_core.main, kubefoundry_selector.main, kubefoundry_kaito.main\n"
        "from kubefoundry_sdk._runtime import traces\n"
        "traces.set_up('core', 'pod', {})\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )

    result = subprocess.run([sys.executable, "-c", program], check=False)

    assert result.returncode == 0


def test_missing_package_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)

    traces.set_up("core", "pod-1", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"})

    [record] = caplog.records
    assert record.getMessage() == "spans are not exported, because OpenTelemetry is not installed"
    assert not traces.are_exported()


def test_invalid_variable_is_logged_and_stops_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5000")

    traces.set_up("core", "pod-1", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"})

    [record] = caplog.records
    assert record.getMessage() == "spans are not exported, because a variable of OpenTelemetry is invalid"
    assert not traces.are_exported()


@pytest.mark.parametrize("status", [200, 400, 500, 503])
@pytest.mark.parametrize("compression", ["identity", "gzip"])
async def test_endless_answer_of_collector_is_not_read(
    status: int, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, sent = asyncio.Event(), 0
    piece = gzip.compress(bytes(2**20)) if compression == "gzip" else bytes(2**16)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} x\r\nContent-Encoding: {compression}\r\n\r\n".encode())
        try:
            while sent < 2**26:
                writer.write(piece)
                sent += len(piece)
                await writer.drain()
        except ConnectionError:
            closed.set()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        await spans_of(Collector(""), "core", read_model)
        async with asyncio.timeout(SECONDS):
            await closed.wait()

    assert sent < 2**26
