"""The command line writes and reads names of kinds as kubectl does."""

from __future__ import annotations

import pytest

from kubefoundry_cli.output import qualified_name
from kubefoundry_local.suite import Suite
from kubefoundry_sdk.api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS
from kubefoundry_sdk.cluster.client import Client
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

    assert qualified_name(DEPLOYMENTS, {"metadata": {"name": "d"}}) == kubectl.stdout.strip()
