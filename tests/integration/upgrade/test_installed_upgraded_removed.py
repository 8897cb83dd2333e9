"""Twenty serving models across an upgrade from the commit before, a removal by kubectl and one by command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import COMPONENTS, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.kinds import UPSTREAM
from support.model_writes import PROVIDERS, log_size, upstream_objects, upstream_writes
from support.played_pods import node
from support.serving_models import create_models, until_every_model_had_its_turn, until_running
from support.suites import running_suite
from support.versions import extract, import_path

pytestmark = [pytest.mark.integration, pytest.mark.apart]

MANY = 20


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    with running_suite(tmp_path, *UPSTREAM, plane_flags=["--all-controllers"]) as made:
        yield made


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The sources of the earlier version."""
    return extract(tmp_path / "before")


async def test_no_model_is_written_to_or_lost(
    suite: Suite, api: Client, namespace: str, before: Path
) -> None:
    here = CommandLine(suite.plane.kubeconfig, namespace)
    old = {"PYTHONPATH": import_path(before)}
    # the commit before installs itself
    install_with_its_own_command_line(suite, before, old["PYTHONPATH"])
    run(suite, before / "manifests", old)
    models = await create_models(api, namespace, MANY)
    async with node(api, namespace):
        await until_running(api, namespace, models)
        there = await upstream_objects(api, namespace)
        assert len(there) == MANY
        start = log_size(suite)

        # upgraded by this one
        stop(suite)
        without_webhooks(suite)
        for command in ("controller upgrade", *(f"provider upgrade {name}" for name in PROVIDERS)):
            done = await here(command, "--yes", "--force-conflicts")
            assert done.code == 0, (command, done)
        run(suite, ROOT / "manifests", {})
        await until_every_model_had_its_turn(api, namespace, "upgraded")

        # removed as people remove what they have applied, and installed again
        stop(suite)
        # The CRDs are refused, so kubectl reports an error.
        install = str(ROOT / "manifests/install.yaml")
        suite.plane.kubectl("delete", "-f", install, "--wait=false", check=False)
        kept, _ = await api.list(MODEL_DEPLOYMENTS, namespace)
        assert {one["metadata"]["name"] for one in kept} >= set(models)
        suite.plane.kubectl("wait", "--for=delete", "namespace/kubefoundry-system", "--timeout=180s")
        suite.install_ground()
        run(suite, ROOT / "manifests", {})
        await until_every_model_had_its_turn(api, namespace, "installed-again")

        after = await upstream_objects(api, namespace)
        written = upstream_writes(suite, namespace, start, models)
        print(f"{len(written)} upstream writes, {len(there.keys() - after.keys())} of {MANY} models lost")
        assert written == []
        assert there.items() <= after.items()

        # removed for good: they serve on
        refused = await here("controller uninstall", "--yes")
        assert (refused.code, "need KubeFoundry" in refused.err) == (1, True), refused
        removed = await here("controller uninstall", "--yes", "--eject")
        assert (removed.code, "KubeFoundry is removed" in removed.err) == (0, True), removed
        assert (await api.list(MODEL_DEPLOYMENTS))[0] == []
        suite.plane.kubectl("delete", "-k", str(ROOT / "crds"))
        left = await upstream_objects(api, namespace)
        changed = {key for key in there if left.get(key, ("", 0))[0] != there[key][0]}
        print(f"{len(changed)} of {MANY} upstream objects lost by the removal")
        assert changed == set()
        # a Deployment's generation also counts changes of its annotations
        assert {key for key, value in there.items() if key[0] != "direct" and left[key] != value} == set()


def install_with_its_own_command_line(suite: Suite, folder: Path, path: str) -> None:
    program = [sys.executable, str(Path(sys.executable).with_name("kubefoundry"))]
    for words in (["controller", "install"], *(["provider", "install", name] for name in PROVIDERS)):
        subprocess.run(
            [*program, *words, "--yes", "--kubeconfig", str(suite.plane.kubeconfig)],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": path},
        )
    images = suite.plane.kubectl("get", "deployments", "-n", "kubefoundry-system", "-o", "name").stdout
    assert len(images.split()) == 2 + len(PROVIDERS), images


def run(suite: Suite, manifests: Path, environment: dict[str, str]) -> None:
    """The processes of these manifests, in place of pods that nobody runs."""
    without_webhooks(suite)
    for name in ("core", "selector", *PROVIDERS):
        path = manifests / COMPONENTS[name]
        # the commit before may have kept its files elsewhere
        text = (path if path.exists() else manifests / f"{name}.yaml").read_text()
        documents = [one for one in yaml.safe_load_all(text) if one]
        suite.install(name, environment=environment, documents=documents)
    suite.start("core", "selector", *PROVIDERS)


def without_webhooks(suite: Suite) -> None:
    """A Service leads nowhere here, and one webhook cannot have both that and the URL of our process."""
    kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
    suite.plane.kubectl("delete", kinds, "kubefoundry-core", "--ignore-not-found")


def stop(suite: Suite) -> None:
    for component in suite.components.values():
        component.stop()
