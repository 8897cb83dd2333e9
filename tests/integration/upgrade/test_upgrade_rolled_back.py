"""Serving models across upgrade, rollback and a second upgrade, by the commands of docs/upgrade.md."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.document_commands import document_commands
from support.model_writes import PROVIDERS, log_size, upstream_objects, upstream_writes
from support.played_pods import node
from support.serving_models import create_models, phases, until_every_model_had_its_turn, until_running
from support.suites import upstream_suite
from support.versions import CURRENT, Version, previous_version
from support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.apart, pytest.mark.thorough]

DOCUMENT: Final = ROOT / "docs" / "upgrade.md"
SYSTEM: Final = "kubefoundry-system"
REGISTRY: Final = "registry.example.com/kubefoundry"
"""The registry in the document; each version has its own here, so that their Deployments differ."""

COMPONENTS: Final = {
    "core": "kubefoundry-core",
    "selector": "kubefoundry-selector",
    **{name: f"kubefoundry-provider-{name}" for name in PROVIDERS},
}
WEBHOOKS: Final = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
MODELS: Final = 8


@pytest.fixture
def previous(tmp_path: Path) -> Version:
    return previous_version(tmp_path / "previous")


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    """Upstream CRDs and simulated operators; the earlier version installs the rest, its own CRDs included."""
    with upstream_suite(tmp_path) as running:
        yield running


async def test_roll_back_by_the_command_line_writes_to_no_model(
    suite: Suite, api: Client, namespace: str, previous: Version
) -> None:
    install(suite, previous)
    await run_deployed(suite, api, previous, installed_webhooks(suite))
    models = await create_models(api, namespace, MODELS)
    async with node(api, namespace):
        objects = await serving_objects(api, namespace, models)
        start = log_size(suite)

        await change(suite, api, namespace, "upgraded", "Upgrade", "kubefoundry", CURRENT)
        await change(suite, api, namespace, "undone", "Roll back", "kubectl", previous)
        await change(suite, api, namespace, "again", "Upgrade", "kubefoundry", CURRENT)
        await change(suite, api, namespace, "returned", "Roll back", "kubefoundry", previous)
        await change(suite, api, namespace, "at-last", "Upgrade", "kubefoundry", CURRENT)

        assert upstream_writes(suite, namespace, start, models) == []
        assert objects.items() <= (await upstream_objects(api, namespace)).items()
        assert await phases(api, namespace, models) == dict.fromkeys(models, "Running")


async def test_roll_back_by_kubectl_writes_to_no_model(
    suite: Suite, api: Client, namespace: str, previous: Version
) -> None:
    suite.plane.kubectl("apply", "-f", "-", input=manifest(previous))
    await run_deployed(suite, api, previous, installed_webhooks(suite))
    models = await create_models(api, namespace, MODELS)
    async with node(api, namespace):
        objects = await serving_objects(api, namespace, models)
        start = log_size(suite)

        await change(suite, api, namespace, "upgraded", "Upgrade", "kubectl", CURRENT)
        await change(suite, api, namespace, "undone", "Roll back", "kubectl", previous)
        await change(suite, api, namespace, "again", "Upgrade", "kubectl", CURRENT)
        # the command line takes over from kubectl
        await change(suite, api, namespace, "at-last", "Upgrade", "kubefoundry", CURRENT)

        assert upstream_writes(suite, namespace, start, models) == []
        assert objects.items() <= (await upstream_objects(api, namespace)).items()
        assert await phases(api, namespace, models) == dict.fromkeys(models, "Running")


def test_document_has_commands_for_each_step() -> None:
    assert [len(document_commands(DOCUMENT, *step)) for step in STEPS] == [2, 1, 3, 2]
    conversion = document_commands(DOCUMENT, "Conversion", "kubectl")  # run by test_conversion.py
    assert len(re.findall(r"^    \S", DOCUMENT.read_text(), re.M)) == 8 + len(conversion)


STEPS: Final = (
    ("Upgrade", "kubefoundry"),
    ("Upgrade", "kubectl"),
    ("Roll back", "kubectl"),
    ("Roll back", "kubefoundry"),
)


async def change(
    suite: Suite, api: Client, namespace: str, name: str, section: str, program: str, version: Version
) -> None:
    """Run the document's commands, then the processes of the Deployments, until they have looked at every model."""
    for component in suite.components.values():
        component.stop()
    await until_revisions_are_recorded(api)
    webhooks = installed_webhooks(suite)
    without_webhooks(suite)
    for words in document_commands(DOCUMENT, section, program):
        # the document names one provider, as an example
        examples = [[word.replace("kaito", name) for word in words] for name in PROVIDERS]
        for command in examples if any("kaito" in word for word in words) else [words]:
            execute(suite, version, command)
    # an undo of Deployments leaves the webhooks as they are
    await run_deployed(suite, api, version, installed_webhooks(suite) or webhooks)
    await until_every_model_had_its_turn(api, namespace, name)


def manifest(version: Version) -> str:
    """Return the text of the version's install.yaml, with images of its registry."""
    text = (version.folder / "manifests" / "install.yaml").read_text()
    return text.replace("image: kubefoundry/", f"image: {version.registry}/")


def execute(suite: Suite, version: Version, command: list[str]) -> None:
    if command[0] == "kubectl":
        words = ["-" if word == "manifests/install.yaml" else word for word in command[1:]]
        suite.plane.kubectl(*words, input=manifest(version) if "-" in words else None)
        return
    program = [sys.executable, str(Path(sys.executable).with_name("kubefoundry"))]
    words = [version.registry if word == REGISTRY else word for word in command[1:]]
    done = subprocess.run(
        [*program, *words, "--yes", "--kubeconfig", str(suite.plane.kubeconfig)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **version.environment},
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)


def install(suite: Suite, version: Version) -> None:
    for words in (["controller", "install"], *(["provider", "install", name] for name in PROVIDERS)):
        execute(suite, version, ["kubefoundry", *words, "--registry", REGISTRY])


async def run_deployed(suite: Suite, api: Client, version: Version, webhooks: list[Object]) -> None:
    """Start the processes as their Deployments describe them: they have to be those of this version."""
    without_webhooks(suite)
    for name, deployment_name in COMPONENTS.items():
        deployment = await api.get(DEPLOYMENTS, deployment_name, SYSTEM)
        assert image(deployment).startswith(f"{version.registry}/"), deployment_name
        documents = [deployment, *(webhooks if name == "core" else ())]
        suite.install(name, environment=version.environment, documents=documents)
    suite.start(*COMPONENTS)


async def until_revisions_are_recorded(api: Client) -> None:
    """Wait for the controller of Deployments: an undo goes back to a revision that it has recorded."""

    def is_recorded(obj: Object | None) -> bool:
        seen = (obj or {}).get("status", {}).get("observedGeneration")
        return obj is not None and seen == obj["metadata"]["generation"]

    for name in COMPONENTS.values():
        await until(api, DEPLOYMENTS, name, SYSTEM, is_recorded)


def installed_webhooks(suite: Suite) -> list[Object]:
    """Return core's webhook configurations. The suite applies them again with the address of its process."""
    listed = json.loads(suite.plane.kubectl("get", WEBHOOKS, "-o", "json").stdout)["items"]
    ours = [obj for obj in listed if obj["metadata"]["name"] == "kubefoundry-core"]
    for obj in ours:
        obj["metadata"] = {"name": obj["metadata"]["name"]}
        for webhook in obj["webhooks"]:
            client = webhook["clientConfig"]
            path = urlsplit(client["url"]).path if "url" in client else client["service"]["path"]
            webhook["clientConfig"] = {"service": {"path": path}}
    return ours


def without_webhooks(suite: Suite) -> None:
    """Delete core's webhook configurations: no Service leads to our processes here."""
    suite.plane.kubectl("delete", WEBHOOKS, "kubefoundry-core", "--ignore-not-found")


async def serving_objects(
    api: Client, namespace: str, models: list[str]
) -> dict[tuple[str, str], tuple[str, int]]:
    """Return the upstream objects once every model runs."""
    await until_running(api, namespace, models)
    objects = await upstream_objects(api, namespace)
    assert len(objects) == len(models)
    return objects


def image(deployment: Object) -> str:
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])
