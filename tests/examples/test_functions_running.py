"""Programs with a provider's functions that fail on a real API server; the one in shell passes the kit there."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import yaml

from examples.test_conformance import WIDGETS as KIT_FILES
from examples.test_conformance import check
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS
from kubefoundry_sdk._cluster.client import Client
from support import hostile_functions
from support.kit_planes import kept_planes
from support.waiting import message, reason, until, until_deployment
from support.widgets import create, in_shell, start

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("jq") is None, reason="there is no jq here"),
]

HOSTILE = f"{sys.executable} {hostile_functions.__file__}"


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
    start(fresh, in_shell(f"{HOSTILE} '{way}'", "--call-timeout=3", "--heartbeat-timeout=6"))

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
    start(fresh, in_shell(f"{HOSTILE} {way}", "--call-timeout=300", "--heartbeat-timeout=6"))
    await create(api, namespace)
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ProviderSelected"))
    before = (await api.get(PROVIDER_CONFIGS, "widgets"))["status"]["lastHeartbeat"]

    for _ in range(3):
        before = await next_heartbeat(api, before)

    # Three heartbeats take 4 s at least, and the call still waits.
    live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert reason(live, "ResourceCreated") is None
    # Nor does the call hold up its end, which the suite waits half a minute for.
    assert fresh.components["widgets"].stop() == 0


@pytest.mark.apart
def test_provider_in_shell_passes_the_kit(tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(yaml.safe_dump_all(in_shell()))

    with kept_planes():
        code, failed, passed = check(
            ["provider", "--manifest", str(file), *KIT_FILES], tmp_path / "report.json"
        )

    assert (code, failed) == (0, [])
    assert passed >= 22
