"""`kubectl apply -f` installs everything, and `kubectl delete -f` of the same file deletes no model."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubefoundry_core.crd_protection import CONFIGURATION
from kubefoundry_core.webhook_configurations import VALIDATING
from kubefoundry_local.control_plane import ROOT, ControlPlane, control_plane
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CRDS, DEPLOYMENTS, MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import CPU, model_deployment
from support.played_pods import node
from support.suites import running_suite
from support.waiting import SECONDS, serves, until, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.apart, pytest.mark.sampled(2)]

MANIFESTS = ROOT / "manifests"


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    with control_plane(tmp_path / "plane") as made:
        yield made


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    with running_suite(tmp_path, plane_flags=["--all-controllers"]) as made:
        yield made


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([["-f", str(MANIFESTS / "install.yaml")]], id="install"),
        pytest.param([["-k", str(MANIFESTS)]], id="kustomize"),
        pytest.param(
            [
                ["-f", str(MANIFESTS / name)]
                for name in ("core.yaml", "provider-selector.yaml", "providers/kaito.yaml")
            ],
            id="a la carte",
        ),
    ],
)
def test_apply_installs_everything_on_an_empty_cluster(
    plane: ControlPlane, arguments: list[list[str]]
) -> None:
    plane.kubectl("delete", "-k", str(ROOT / "crds"))

    for files in arguments:
        plane.kubectl("apply", *files)
    plane.wait_served(MODEL_DEPLOYMENTS.crd)

    # No pod answers a webhook here, and both fail open.
    body = model_deployment("m", "default", CPU, provider="direct")
    plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(body))
    deployments = plane.kubectl("get", "deployments", "-n", "kubefoundry-system", "-o", "name").stdout
    assert "deployment.apps/kubefoundry-core" in deployments


async def test_start_names_the_install_command_if_not_installed(plane: ControlPlane) -> None:
    plane.kubectl("delete", "-k", str(ROOT / "crds"))

    async with asyncio.timeout(SECONDS):
        done = await CommandLine(plane.kubeconfig, "default")("start", "--port", "0")

    assert done.code == 4
    assert "kubefoundry-controller not found in cluster.\nRun 'kubefoundry controller install" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["-f", str(MANIFESTS / "install.yaml")], id="install"),
        pytest.param(["-f", str(MANIFESTS / "core.yaml")], id="core"),
        pytest.param(["-k", str(MANIFESTS)], id="kustomize"),
        pytest.param(["-k", str(ROOT / "crds")], id="crds"),
        pytest.param(["crd", MODEL_DEPLOYMENTS.crd], id="by name"),
    ],
)
async def test_delete_keeps_a_serving_model(
    suite: Suite, api: Client, namespace: str, arguments: list[str]
) -> None:
    suite.start("core", "direct")
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU, provider="direct"), manager="test"
    )
    await protected(api)
    async with node(api, namespace):
        before = await until_deployment(api, "m", namespace, serves)
        upstream = await api.get(DEPLOYMENTS, "m", namespace)

        # Whoever sees the refusal tries again; by then the file has deleted core's account.
        first = deleted(suite.plane, *arguments)
        second = deleted(suite.plane, *arguments)
        suite.components["core"].kill()
        third = deleted(suite.plane, *arguments)

        assert (
            f"1 ModelDeployment exists ({namespace}/m): delete or eject every ModelDeployment" in first.stderr
        )
        assert [each.returncode for each in (first, second, third)] == [1, 1, 1]
        after = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert "deletionTimestamp" not in after["metadata"]
        left = await api.get(DEPLOYMENTS, "m", namespace)
        assert left["metadata"]["uid"] == upstream["metadata"]["uid"]
        assert left["spec"] == upstream["spec"]


async def test_delete_removes_models_if_core_never_ran(suite: Suite, api: Client, namespace: str) -> None:
    """README.md says so: core applies the protection, so nothing keeps the CRDs before."""
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU), manager="test")

    done = deleted(suite.plane, "-f", str(MANIFESTS / "install.yaml"))

    assert done.returncode == 0, done.stderr
    await until(api, CRDS, MODEL_DEPLOYMENTS.crd, None, lambda obj: obj is None)


async def test_delete_without_models_removes_everything(suite: Suite, api: Client, namespace: str) -> None:
    suite.start("core")
    await protected(api)

    done = deleted(suite.plane, "-f", str(MANIFESTS / "core.yaml"))

    assert done.returncode == 0, done.stderr

    await until(api, CRDS, MODEL_DEPLOYMENTS.crd, None, lambda obj: obj is None)
    await until(api, VALIDATING, CONFIGURATION, None, lambda obj: obj is None)


async def test_administrator_can_remove_the_protection(suite: Suite, api: Client, namespace: str) -> None:
    suite.start("core")
    await protected(api)
    suite.components["core"].kill()
    refused = deleted(suite.plane, "crd", MODEL_DEPLOYMENTS.crd)

    suite.plane.kubectl("delete", "validatingwebhookconfiguration", CONFIGURATION)
    suite.plane.kubectl("delete", "-k", str(ROOT / "crds"))

    assert refused.returncode == 1
    assert CONFIGURATION in refused.stderr


async def protected(api: Client) -> None:
    """Wait until core has applied the configuration."""
    await until(api, VALIDATING, CONFIGURATION, None, lambda obj: obj is not None)


def deleted(plane: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    return plane.kubectl("delete", "--wait=false", "--ignore-not-found", *arguments, check=False)
