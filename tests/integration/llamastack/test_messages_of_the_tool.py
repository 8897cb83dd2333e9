"""Tests that the tool's real messages, cut as the kubelet cuts them, reach the status."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.client import Client
from llamastack_providers import zipapp
from support.llamastack import (
    ECHO,
    GUARD,
    condition_of,
    container,
    llsd,
    new_pod,
    pod_status,
    reason,
    until_status,
)
from support.provider_images import image, spec, wheel, write_spec
from support.provider_pod import Pod

pytestmark = pytest.mark.integration

CONTAINERS = 5
CUT = 12_288 // CONTAINERS
"""Bytes that the kubelet leaves of each container's message in a pod of five (kubernetes 1.36,
pkg/kubelet/status/status_manager.go): two installs, extract, merge, server."""


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zipapp.build(tmp_path_factory.mktemp("tool") / "llamastack-providers.pyz")


@pytest.fixture
def pod(tmp_path: Path, tool: Path) -> Pod:
    tool_pod = Pod(tmp_path / "pod", tool)
    tool_pod.shared.mkdir(parents=True)
    return tool_pod


def no_metadata(folder: Path) -> None:
    (folder / "lls-provider-spec.yaml").unlink()


def broken_yaml(folder: Path) -> None:
    write_spec(folder, "kind: [ProviderPackage\nmetadata: {}\n")


def another_api(folder: Path) -> None:
    write_spec(folder, spec(spec__api="safety"))


def refused_by_pip(folder: Path) -> None:
    scripts = {"bad-1.0.0.dist-info/entry_points.txt": "[console_scripts]\nno-function = bad\n"}
    wheel(folder / "packages", "bad", files=scripts)


def excludes_the_first(folder: Path) -> None:
    wheel(folder / "packages", "acme-common", "2.0")


FAILS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "no metadata": (no_metadata, ("Missing /lls-provider/lls-provider-spec.yaml in image",)),
    "invalid YAML": (broken_yaml, ("lls-provider-spec.yaml at line 2, column 9",)),
    "another section": (
        another_api,
        (
            "declares api=safety",
            "placed under externalProviders.inference",
            "externalProviders.safety section",
        ),
    ),
    "pip": (refused_by_pip, ("no-function", "Check that the wheels fit the Python of the image")),
    "a conflict": (
        excludes_the_first,
        (
            "acme-common 2.0",
            "acme-common 1.0 of provider 'guard' (image: images/guard:1)",
            "/opt/llama-stack/external-providers/installed-packages.txt",
        ),
    ),
}


@pytest.mark.accept("FR-001", "FR-024", "FR-029", "FR-030", "FR-031", "FR-032", "SC-002", "SC-009")
@pytest.mark.accept("US1-3", "US3-1", "US3-2", "US3-3", "US3-5", "US3-6")
@pytest.mark.parametrize("name", FAILS)
async def test_install_refusal_reaches_status(
    api: Client, stack: Suite, namespace: str, pod: Pod, tmp_path: Path, name: str
) -> None:
    change, phrases = FAILS[name]
    first = image(tmp_path / "guard", "acme-guard")
    wheel(first / "packages", "acme-common", "1.0")
    assert pod.install(first, "guard").code == 0
    source = image(tmp_path / "echo")
    change(source)
    ended = pod.install(source, "echo")

    wish: dict[str, Any] = {
        "inference": [{**GUARD, "image": "images/guard:1"}, {**ECHO, "image": "images/echo:1"}]
    }
    status = await seen(api, namespace, wish, "external-provider-echo", ended.code, ended.message)

    row = status["externalProviderStatus"][1]
    assert row["phase"] == "Failed"
    assert reason(status, "ExternalProvidersReady") == "ProviderFailed"
    for text in (row["message"], condition_of(status, "ExternalProvidersReady")["message"]):
        for phrase in (*phrases, "echo", "images/echo:1", "external-provider-echo", "Resolution: "):
            assert phrase in text


@pytest.mark.accept("FR-029", "SC-002", "US3-7")
async def test_missing_base_config_reaches_status(
    api: Client, stack: Suite, namespace: str, pod: Pod
) -> None:
    where = {"image": "example.com/stack:1", "container": "extract-distribution-config"}
    ended = pod.command("extract-config", where, env={"DISTRO_NAME": "", "RUN_CONFIG_PATH": ""})

    status = await seen(
        api, namespace, {"inference": [ECHO]}, "extract-distribution-config", ended.code, ended.message
    )

    assert reason(status, "ExternalProvidersReady") == "ConfigExtractFailed"
    text = condition_of(status, "ExternalProvidersReady")["message"]
    for word in (
        "No run.yaml found in distribution image",
        "/opt/app-root/run.yaml",
        "example.com/stack:1",
        "extract-distribution-config",
        "Resolution: Either provide a user ConfigMap with run.yaml",
    ):
        assert word in text


async def seen(api: Client, namespace: str, wish: Object, name: str, code: int, message: str) -> Object:
    """Return the CR's status once the container of that name has ended with this message."""
    await api.create(LLSD, llsd("messages", namespace, externalProviders=wish), manager="user")
    live = await new_pod(api, "messages", namespace, wish["inference"][0]["image"])
    cut = message.encode()[:CUT].decode(errors="ignore")
    ended = {"exitCode": code, "message": cut}
    states = []
    for item in live["spec"]["initContainers"]:
        if item["name"] == name:
            states.append(container(name, waiting={"reason": "CrashLoopBackOff"}, last=ended))
            break
        states.append(container(item["name"], terminated={"exitCode": 0, "message": "{}"}))
    await pod_status(api, live, {"phase": "Pending", "initContainerStatuses": states})
    return await until_status(
        api,
        "messages",
        namespace,
        lambda status: (
            condition_of(status, "ExternalProvidersReady").get("status") == "False"
            and reason(status, "ExternalProvidersReady") != "ProvidersPending"
        ),
    )
