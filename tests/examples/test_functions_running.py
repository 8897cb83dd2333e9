"""The Widget provider in shell as a process on a real API server, and programs that fail there."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.test_conformance import check
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._cluster.client import Client
from support import hostile_functions
from support.deployments import GPU, model_deployment
from support.kit_planes import kept_planes
from support.suites import install_crd
from support.waiting import message, reason, serves, until, until_deployment
from support.widgets import EXAMPLES, SPEC, WIDGETS, says

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("jq") is None, reason="there is no jq here"),
]

SHELL = EXAMPLES / "functions" / "shell"
HOSTILE = f"{sys.executable} {hostile_functions.__file__}"


def manifest(command: str, *more: str) -> list[dict[str, Any]]:
    """Return the manifest of the shell example, with another command for the functions."""
    documents = list(yaml.safe_load_all((SHELL / "manifest.yaml").read_text()))
    for document in documents:
        if document["kind"] == "Deployment":
            container = document["spec"]["template"]["spec"]["containers"][0]
            kept = [word for word in container["args"] if not word.startswith("--command=")]
            container["args"] = [*kept, f"--command={command}", *more]
    return documents


def start(suite: Suite, command: str, *more: str) -> None:
    """Install and start core and the provider with these functions."""
    install_crd(suite, yaml.safe_load((EXAMPLES / "provider" / "widgets.crd.yaml").read_text()))
    suite.install("widgets", documents=manifest(command, *more))
    suite.start("core", "widgets")


async def create(api: Client, namespace: str, name: str = "m", **spec: Any) -> Object:
    body = model_deployment(name, namespace, {**SPEC, **spec}, provider="widgets")
    return await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def test_provider_in_shell_serves_and_cleans_up(fresh: Suite, api: Client, namespace: str) -> None:
    start(fresh, str(SHELL / "provider.sh"))

    deployment = await create(api, namespace)
    widget = await until(api, WIDGETS, "m", namespace, lambda obj: obj)
    assert widget and widget["spec"]["model"] == GPU["model"]["id"]
    assert widget["metadata"]["ownerReferences"][0]["uid"] == deployment["metadata"]["uid"]

    await says(api, namespace, state="Serving", ready=1)
    running = await until_deployment(api, "m", namespace, serves)
    assert running["status"]["endpoint"] == {"service": "m", "port": 8000}

    await create(api, namespace, "refused", nodeSelector={"zone": "a"})
    refused = await until_deployment(
        api, "refused", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )
    assert message(refused, "ProviderCompatible") == "Widgets has no place for nodeSelector: remove it"

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=deployment["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, WIDGETS, "m", namespace, lambda obj: obj is None)


@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ("silent", "its program did not respond to supports within 3 s"),
        ("exit", "its program ended with exit code 3 in supports"),
        ("wrong id", "its program responded to supports with another id than the request's"),
        ("not sentences", "supports returned result[0]: should be a valid string"),
        ("error", "supports failed: out of widgets"),
    ],
)
async def test_failing_functions_are_a_provider_error(
    way: str, problem: str, fresh: Suite, api: Client, namespace: str
) -> None:
    start(fresh, f"{HOSTILE} '{way}'", "--call-timeout=3", "--heartbeat-timeout=6")

    await create(api, namespace)

    failed = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ProviderError"
    )
    assert message(failed, "ResourceCreated") == (
        f"Provider widgets has an error: {problem}; report it to its authors, its log has more"
    )
    # The process goes on: it reports itself, although each call fails.
    before = (await api.get(PROVIDER_CONFIGS, "widgets"))["status"]["lastHeartbeat"]
    assert await next_heartbeat(api, before)
    assert fresh.components["widgets"].running


async def next_heartbeat(api: Client, before: str) -> str:
    """Return the time of a heartbeat after another one."""
    config = await until(
        api, PROVIDER_CONFIGS, "widgets", None, lambda obj: obj and obj["status"]["lastHeartbeat"] > before
    )
    assert config
    return str(config["status"]["lastHeartbeat"])


@pytest.mark.parametrize("way", ["silent", "render:silent"])
async def test_waiting_function_does_not_hold_up_the_process(
    way: str, fresh: Suite, api: Client, namespace: str
) -> None:
    start(fresh, f"{HOSTILE} {way}", "--call-timeout=40", "--heartbeat-timeout=6")
    await create(api, namespace)
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ProviderSelected"))
    before = (await api.get(PROVIDER_CONFIGS, "widgets"))["status"]["lastHeartbeat"]

    for _ in range(3):
        before = await next_heartbeat(api, before)

    # Three heartbeats take 4 s at least, and the call still waits.
    live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert reason(live, "ResourceCreated") is None
    # Nor does the call hold up its end.
    began = time.monotonic()
    assert fresh.components["widgets"].stop() == 0
    assert time.monotonic() - began < 10


@pytest.mark.apart
def test_provider_in_shell_passes_the_kit(tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(yaml.safe_dump_all(manifest(str(SHELL / "provider.sh"))))
    crd, cases = EXAMPLES / "provider" / "widgets.crd.yaml", EXAMPLES / "provider" / "cases.yaml"

    with kept_planes():
        code, failed, passed = check(
            ["provider", "--manifest", str(file), "--crd", str(crd), "--cases", str(cases)],
            tmp_path / "report.json",
        )

    assert (code, failed) == (0, [])
    assert passed >= 22
