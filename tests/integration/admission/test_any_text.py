"""Text with any characters is stored as it was sent, by every kind of write."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api.kinds import EVENTS, MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._runtime.recorder import Recorder
from support.deployments import CPU, model_deployment

pytestmark = pytest.mark.integration

TEXTS = {
    "above U+FFFF": "😀 and 𝔘 and \U0010fffd",
    "what YAML takes for a line's end": "a\u2028b\u2029c\u0085d",
    "what YAML does not print": "\x7f\x80\x9f\ufeff\ufffe\uffff",
    "control characters": "\x01\x1b\t\n\r",
    "escapes that are none": "\\ud83d\\ude00 \\\\u0041 \\",
    "half a surrogate pair": "a\ud83db",
}
STORED = {**TEXTS, "half a surrogate pair": "a\ufffdb"}


async def test_spec_and_status_take_any_text(cluster: object, api: Client, namespace: str) -> None:
    env = [{"name": f"TEXT{number}", "value": text} for number, text in enumerate(TEXTS.values())]
    expected = [{"name": f"TEXT{number}", "value": text} for number, text in enumerate(STORED.values())]
    body = model_deployment("m", namespace, {**CPU, "env": env})

    applied = await api.apply(MODEL_DEPLOYMENTS, body, manager="user")
    head = {key: body[key] for key in ("apiVersion", "kind", "metadata")}
    reported: dict[str, Any] = {**head, "status": {"message": "".join(TEXTS.values())}}
    said = await api.apply_status(MODEL_DEPLOYMENTS, reported, manager="somebody")

    assert applied["spec"]["env"] == expected
    assert said["status"]["message"] == "".join(STORED.values())
    assert (await api.get(MODEL_DEPLOYMENTS, "m", namespace))["spec"]["env"] == expected


async def test_event_about_a_long_name_is_stored(cluster: object, api: Client, namespace: str) -> None:
    """Its own name is cut where the API server would refuse it: behind a dash."""
    name = "x" * 199 + "-" + "y" * 20
    made = await api.create(MODEL_DEPLOYMENTS, model_deployment(name, namespace, CPU), manager="user")
    recorder = Recorder(api, component="test", instance="i")
    recorder.event(made, "Warning", "Test", "".join(TEXTS.values()))

    await recorder._send(recorder._next())

    [event], _ = await api.list(EVENTS, namespace)
    assert (event["regarding"]["name"], event["note"]) == (name, "".join(STORED.values()))
