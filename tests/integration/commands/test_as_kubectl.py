"""The command line accepts and prints names of kinds as kubectl does."""

from __future__ import annotations

import pytest

from kubefoundry_cli.output import qualified_name, type_of
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment

pytestmark = pytest.mark.integration


@pytest.fixture
def kubefoundry(suite: Suite, namespace: str) -> CommandLine:
    return CommandLine(suite.plane.kubeconfig, namespace)


async def create(api: Client, namespace: str) -> None:
    body = model_deployment("m", namespace, GPU, provider="kuberay")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")


@pytest.mark.parametrize(
    ("command", "resource"),
    [
        (["status"], "md"),
        (["status", "m"], "md/m"),
        (["provider list"], "inferenceproviderconfigs"),
    ],
)
async def test_names_are_printed_as_kubectl_prints_them(
    suite: Suite, kubefoundry: CommandLine, api: Client, namespace: str, command: list[str], resource: str
) -> None:
    await create(api, namespace)

    done = await kubefoundry(*command, "-o", "name")

    kubectl = suite.plane.kubectl("get", resource, "-n", namespace, "-o", "name")
    assert (done.out, bool(done.out)) == (kubectl.stdout, True), done.err


async def test_name_of_built_in_kind_is_that_of_kubectl(suite: Suite, namespace: str) -> None:
    kubectl = suite.plane.kubectl("create", "deployment", "d", "--image=x", "-n", namespace, "-o", "name")

    assert qualified_name({**type_of(DEPLOYMENTS), "metadata": {"name": "d"}}) == kubectl.stdout.strip()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(
            (name, "Workspace")
            for name in ("wk", "workspace", "workspaces", "Workspace", "workspaces.kaito.sh")
        ),
        *((name, "DynamoGraphDeployment") for name in ("dgd", "dgd.nvidia.com", "dynamographdeployment")),
        *((name, "RayService") for name in ("rayservice.ray.io", "rayservices.v1.ray.io", "RayServices")),
        *((name, "Deployment") for name in ("deploy", "deployment.apps", "deploy.v1.apps", "Deployments")),
    ],
)
async def test_import_takes_each_name_of_a_kind(
    suite: Suite, kubefoundry: CommandLine, namespace: str, name: str, kind: str
) -> None:
    # kubectl knows it, too
    found = suite.plane.kubectl("get", f"{name}/none", "-n", namespace, check=False)
    assert "NotFound" in found.stderr

    done = await kubefoundry("import", f"{name}/none", "--dry-run")

    assert done.err == f"error: {kind} 'none' not found in namespace {namespace}\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("worksapce", "; did you mean 'workspace'?"),
        ("pod", "(known: Deployment (deploy), DynamoGraphDeployment (dgd), "),
        ("workspaces.other.io", "writes workspaces.other.io (known: "),
        ("md", "a ModelDeployment is no upstream object: there is nothing to import"),
    ],
)
async def test_import_answers_an_unknown_kind(kubefoundry: CommandLine, name: str, expected: str) -> None:
    done = await kubefoundry("import", f"{name}/m", "--dry-run")

    assert (done.code, expected in done.err, done.err.count("\n")) == (2, True, 1), done.err


async def test_import_for_a_provider_takes_only_its_kind(kubefoundry: CommandLine) -> None:
    done = await kubefoundry("import", "rayservice/m", "--provider", "kaito", "--dry-run")

    assert (done.code, "writes rayservice (known: Workspace (wk))" in done.err) == (2, True), done.err
