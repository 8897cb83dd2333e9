"""A program with a provider's functions that is silent, lies or ends: the caller gets a Fault in time."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_sdk import Deployment, Provider, Schema, UnsupportedSchema
from kubefoundry_sdk._cluster.logs import VALUES
from kubefoundry_sdk._functions.client import Client, Deadlines
from kubefoundry_sdk._functions.main import described
from kubefoundry_sdk._functions.messages import Settings
from kubefoundry_sdk._functions.program import LOG_LINE, LOG_LINES, Program, _log_lines
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.results import Fault
from kubefoundry_sdk.testing import deployment
from support import hostile_functions

HOSTILE = hostile_functions.__file__
LONG = 120.0
"""Seconds of a deadline that ends no test, even on a disk that stalls."""

SCHEMA = Schema("example.com/v1")
GPU = {"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 1}}}
Start = Callable[..., Client]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program that ends with the test."""
    clients: list[Client] = []

    def started(*arguments: str, seconds: float = LONG) -> Client:
        command = [sys.executable, HOSTILE, *arguments]
        clients.append(Client(command, Settings(), Deadlines(seconds, LONG)))
        return clients[-1]

    yield started
    for client in clients:
        client.close()


def supports(provider: Provider, model: Deployment | None = None) -> list[str]:
    return results.supports(provider, model or deployment(GPU), SCHEMA)


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("silent", "its program did not respond to supports within 1 s"),
        ("slow", "its program did not respond to supports within 1 s"),
        ("huge", "its program wrote a line of more than 4 MiB in supports"),
        ("endless", "its program wrote a line of more than 4 MiB in supports"),
        ("deep", "its program wrote a line that is nested more than 200 levels deep, in supports"),
        ("exit", "its program ended with exit code 3 in supports"),
        ("signal", "its program ended with signal 9 in supports"),
        ("closed", "its program closed its output in supports"),
        ("two lines", "its program wrote more than one line in supports"),
        ("half a line", "its program ended with exit code 0 in supports"),
        ("wrong id", "its program responded to supports with another id than the request's"),
        ("id as text", "its program responded to supports with another id than the request's"),
        ("no id", "its program responded to supports with another id than the request's"),
        ("id true", "its program responded to supports with another id than the request's"),
        ("not JSON", "its program wrote a line that is not JSON: Expecting value"),
        ("empty", "its program wrote a line that is not JSON: Expecting value"),
        ("a list", "its program wrote a line that is not an object, in supports"),
        ("NaN", "its program wrote a line with NaN, which is not a number in JSON, in supports"),
        ("infinite", "its program wrote a line with 1e999, which is beyond a double, in supports"),
        ("digits", "its program wrote a line with a number of 400 digits, in supports"),
        ("not UTF-8", "its program wrote a line that is not UTF-8 at byte "),
        ("half a pair", "its program wrote a line with half a surrogate pair, in supports"),
        ("repeated key", "its program wrote a line with the key 'result' twice, in supports"),
        ("late repetition", "its program wrote a line with the key 'z' twice, in supports"),
        ("unknown key", "its program responded to supports with the unknown key 'more'"),
        ("both", "its program responded to supports with neither or both of result and error"),
        ("neither", "its program responded to supports with neither or both of result and error"),
        ("empty error", "its program responded to supports with an error that is not a sentence"),
        ("error", "supports failed: out of widgets"),
        ("not a list", "supports returned result: should be a valid array"),
        ("not sentences", "supports returned result[0]: should be a valid string"),
        ("blank sentence", "supports returned ' ' as a problem, which is not a sentence"),
    ],
)
def test_misbehaving_program_is_a_fault(way: str, message: str, start: Start) -> None:
    # A busy machine takes a while for the others.
    provider = described(start(way, seconds=1.0 if way in ("silent", "slow") else LONG), "widgets")
    began = time.monotonic()

    with pytest.raises(Fault) as caught:
        supports(provider)

    assert str(caught.value).startswith(message)
    assert time.monotonic() - began < LONG


def test_probe_is_called_again_when_program_ends(start: Start, tmp_path: Path) -> None:
    description = written(tmp_path, {"fields": None, "functions": ["probe"]})
    provider = described(start("probe:ends once", description), "widgets")

    assert provider.probe({}) == SCHEMA
    assert (tmp_path / "description.ended").exists()


@pytest.mark.parametrize("way", ["exit", "silent", "wrong id", "two lines"])
def test_failed_program_is_started_again(way: str, start: Start) -> None:
    provider = described(start(way, seconds=2.0 if way == "silent" else LONG), "widgets")
    with pytest.raises(Fault):
        supports(provider)

    # The program answers every other function, here with a list, which is no Rendered.
    with pytest.raises(Fault, match=r"render returned result: "):
        provider.render(deployment(GPU), SCHEMA)


def test_program_that_keeps_failing_is_delayed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = 0
    original = Program.start

    def counted(program: Program) -> None:
        nonlocal starts
        starts += 1
        original(program)

    monkeypatch.setattr(Program, "start", counted)
    provider = described(start("exit"), "widgets")

    for _ in range(50):
        with pytest.raises(Fault, match="exit code 3"):
            supports(provider)

    # the first, the one without a delay, and as many as fit into the delays of 1 s and more
    assert 2 <= starts <= 4


def test_error_does_not_restart_the_program(start: Start) -> None:
    client = start("error")
    provider = described(client, "widgets")
    before = client._program._process

    for _ in range(3):
        with pytest.raises(Fault, match="out of widgets"):
            supports(provider)

    assert before is not None
    assert client._program._process is before


def test_closed_program_is_gone(start: Start) -> None:
    client = start("chatty")
    provider = described(client, "widgets")
    assert supports(provider) == []

    client.close()

    assert client._program.is_running is False
    with pytest.raises(Fault, match="has been ended"):
        supports(provider)


def test_program_is_gone_when_closed_at_its_start(start: Start) -> None:
    client = start("describe:silent")
    closing = threading.Thread(target=client.close)

    def close(event: str, _: object) -> None:
        # Popen raises this event just before it starts the program.
        if event == "subprocess.Popen" and threading.current_thread() is thread:
            closing.start()
            while not client._closed:
                closing.join(0.01)
            # It has killed nothing, and waits for the lock.
            closing.join(0.5)

    faults: list[Fault] = []

    def describe() -> None:
        try:
            client.describe()
        except Fault as error:
            faults.append(error)

    thread = threading.Thread(target=describe)
    sys.addaudithook(close)
    began = time.monotonic()

    thread.start()
    thread.join()
    closing.join()

    assert time.monotonic() - began < LONG
    assert [str(fault) for fault in faults] == ["its program has been ended, because the provider ends"]


def test_stderr_of_program_is_logged(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    logged = threading.Event()

    def note(record: logging.LogRecord) -> bool:
        if vars(record).get(VALUES) == {"line": "out of widgets"}:
            logged.set()
        return True

    logger = logging.getLogger("kubefoundry_sdk._functions.program")
    logger.addFilter(note)
    try:
        provider = described(start("chatty"), "widgets")
        assert supports(provider) == []
        assert logged.wait(LONG)
    finally:
        logger.removeFilter(note)


def test_stderr_of_program_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    began = time.monotonic()

    _log_lines(io.BytesIO(b"x" * 5000 + b"\n" + b"line\n" * 20_000))

    assert "more lines of the program in this second are not logged" in caplog.messages
    assert len(caplog.records) <= LOG_LINES * (time.monotonic() - began + 2)
    lines = [str(value) for record in caplog.records for value in vars(record).get(VALUES, {}).values()]
    assert max(map(len, lines)) == LOG_LINE


def written(folder: Path, change: dict[str, Any]) -> str:
    """Write a description that differs from the valid one, and return the file."""
    file = folder / "description.json"
    file.write_text(json.dumps({**hostile_functions.DESCRIPTION, **change}), encoding="utf-8")
    return str(file)


def test_other_description_after_restart_is_a_fault(start: Start, tmp_path: Path) -> None:
    provider = described(start("exit", written(tmp_path, {})), "widgets")
    written(tmp_path, {"title": "Gadgets"})
    with pytest.raises(Fault, match="exit code 3"):
        supports(provider)

    with pytest.raises(Fault, match="describes another provider than before its restart"):
        supports(provider)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": 2}, "its program speaks protocol 2, and this SDK 1"),
        ({"protocol": "1"}, "describe returned result.protocol: should be a valid integer"),
        ({"titel": "x"}, "describe returned result.titel: is an unknown key"),
        ({"name": "Widgets!"}, "describe returned result.name: String should match pattern"),
        ({"name": "gadgets"}, "the program describes provider gadgets, not widgets: give --name gadgets"),
        ({"fields": None}, "describe returned result: an upstream kind with a CRD needs either fields or"),
        ({"functions": ["probe"]}, "describe returned result: an upstream kind with a CRD needs either"),
        ({"functions": ["proeb"]}, "describe returned result.functions[0]: should be 'probe'"),
        (
            {"capabilities": {"engines": []}},
            "describe returned result.capabilities.servingModes: is required",
        ),
        ({"helperKinds": ["Secret"]}, "describe returned result.helperKinds[0]: should be 'ConfigMap'"),
        (
            {"overrides": {"type": "object"}},
            "describe returned result.overrides: overrides: has to be of type",
        ),
        (
            {"overrides": {"type": "object", "properties": {"a": {"type": "text"}}}},
            "describe returned result.overrides: overrides.properties.a.type: should be one of string",
        ),
        (
            {"overrides": {"type": "object", "properties": {"a": {"type": "string", "format": "x"}}}},
            "describe returned result.overrides: overrides.properties.a.format: is an unknown key",
        ),
        (
            {"overrides": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}},
            "describe returned result.overrides: overrides.properties.a.type: should be one of string",
        ),
        (
            {"overrides": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0.5}}}},
            "describe returned result.overrides: overrides.properties.a.minimum: should be an integer",
        ),
        ({"settles": -1}, "describe returned result.settles: should be greater than or equal to 0"),
        ({"pods": {"label": "a", "value": ["b"]}}, "describe returned result.pods.value: is an unknown key"),
    ],
)
def test_wrong_description_is_named(
    change: dict[str, Any], message: str, start: Start, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="provider") as caught:
        described(start("error", written(tmp_path, change)), "widgets")

    assert str(caught.value).removeprefix("no provider: ").startswith(message)


def test_program_that_cannot_start_is_named() -> None:
    client = Client(["/nowhere/program"], Settings())

    with pytest.raises(ValueError, match=r"its program /nowhere/program cannot be started: .*No such file"):
        described(client, None)


def test_description_becomes_the_provider(start: Start, tmp_path: Path) -> None:
    described_pods = {
        "label": "app",
        "values": ["metadata.name", "status.pools[].name"],
        "makers": ["status.x"],
    }
    overrides = {
        "type": "object",
        "properties": {
            "tier": {"type": "string", "enum": ["gold", "tin"]},
            "size": {"type": "integer", "minimum": 1},
            "nested": {
                "type": "object",
                "properties": {"deep": {"type": "array", "items": {"type": "number"}}},
            },
        },
    }
    change = {
        "pods": described_pods,
        "overrides": overrides,
        "operator": {"deployment": "d", "namespaces": ["n"]},
        "scaled": ["spec.replicas"],
        "settles": 2,
        "helperKinds": ["Service"],
        "fields": {
            "v1": {"needed": ["spec.model"], "optional": {"tier": "spec.tier"}, "lost": {"tier": "tiers"}}
        },
    }
    provider = described(start("error", written(tmp_path, change)), None)

    assert (provider.scaled, provider.settles, provider.helper_kinds) == (
        ("spec.replicas",),
        2.0,
        ("Service",),
    )
    assert provider.operator is not None and provider.operator.namespaces == ("n",)
    assert provider.pods is not None
    live = {"metadata": {"name": "m"}, "status": {"pools": [{"name": "a"}, {"name": 1}, "b"], "x": {}}}
    assert provider.pods.values(live) == ["m", "a"]
    assert provider.pods.makers(live) == []
    crd = {
        "spec": {
            "group": "example.com",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": {"model": {}}}}}},
                }
            ],
        }
    }
    assert provider.probe(crd) == Schema("example.com/v1", frozenset(), ("tiers",))
    assert provider.probe({}) == UnsupportedSchema(("None/v1",))
    form = provider.overrides.model_validate({"tier": "tin", "nested": {"deep": [1.5]}, "other": 1})
    assert form.model_dump(by_alias=True, exclude_none=True) == {"tier": "tin", "nested": {"deep": [1.5]}}
    for wrong in ({"tier": "iron"}, {"size": 0}, {"nested": {"deep": 3}}):
        with pytest.raises(ValueError, match="validation error"):
            provider.overrides.model_validate(wrong)
