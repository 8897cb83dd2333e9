"""The commands of docs/runbooks.md succeed as written, and print the text that a reader looks for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kubefoundry_local.apply import apply
from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import Suite, manifest
from kubefoundry_sdk._api.kinds import PODS
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine, Done
from support.deployments import GPU
from support.document_commands import code_lines
from support.edits import running
from support.log_texts import LOG_TEXTS
from support.suites import running_suite

pytestmark = pytest.mark.integration

DOCUMENT: Final = ROOT / "docs/runbooks.md"
SYSTEM: Final = "kubectl -n kubefoundry-system"

RUN: Final[dict[str, tuple[str, ...]]] = {
    "kubectl get md -n NAMESPACE": ("m ", "Running"),
    "kubectl get md -A": ("NAMESPACE ", "Running"),
    "kubectl get md NAME -n NAMESPACE -o jsonpath='{.status.message} {.metadata.finalizers}'": (
        "replicas serve",
        "kubefoundry.ai/kuberay-provider",
    ),
    "kubectl get pods -A --field-selector status.phase=Pending": ("NAMESPACE ", "unscheduled "),
    "kubectl get ipc": ("kuberay ",),
    "kubectl describe ipc NAME": ("RulesValid", "Message: "),
    f"{SYSTEM} get deployment,pods": ("deployment.apps/kubefoundry-core ",),
    f"{SYSTEM} get deployment kubefoundry-core": ("AVAILABLE", "kubefoundry-core "),
    f"{SYSTEM} get lease NAME -o yaml": ("holderIdentity: ", "renewTime: "),
    f"{SYSTEM} get lease kubefoundry-core": ("HOLDER", "kubefoundry-core "),
    f"{SYSTEM} rollout restart deployment/COMPONENT": ("deployment.apps/kubefoundry-core restarted",),
    "kubefoundry doctor -A": ("provider kuberay is ready", "models in all namespaces serve"),
    "kubefoundry doctor MODEL -n NAMESPACE": ("m serves generation 1",),
    "kubefoundry doctor --bundle FILE -n NAMESPACE": (
        "1 of 1 models in namespace NAMESPACE serve",
        "bundle.tar.gz",
    ),
    "kubefoundry explain MODEL -n NAMESPACE": ("kuberay is named by spec.provider.name",),
}
"""The commands that run, with texts of their output. The runbooks name no exit code, so each has to be 0."""

NOT_RUN: Final = {
    f"{SYSTEM} port-forward POD 8081": "needs a pod that runs",
    "curl localhost:8081/readyz": "needs the forwarded port of a pod",
    f'{SYSTEM} logs -l app.kubernetes.io/name=COMPONENT --tail=-1 | grep "internal error"': "needs a pod's log",
    f"{SYSTEM} describe certificate": "needs the CRDs of cert-manager",
}
"""The commands that cannot run on this suite, with the reason."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core, the selector and provider kuberay, and core's Deployment, with a status as its controller writes it."""
    with running_suite(tmp_path_factory.mktemp("runbooks"), "kuberay") as made:
        made.start("core", "selector", "kuberay")
        apply(made.plane, [document for document in manifest("core") if document["kind"] == "Deployment"])
        status = '{"status":{"replicas":1,"readyReplicas":1,"availableReplicas":1}}'
        where = ("-n", "kubefoundry-system", "deployment/kubefoundry-core")
        made.plane.kubectl("patch", *where, "--subresource=status", "--type=merge", "-p", status)
        yield made


@pytest.fixture
async def values(api: Client, namespace: str, tmp_path: Path) -> dict[str, str]:
    """The values of the placeholders, after the creation of a model that serves and a pod without a node.

    The value of NAME depends on the word before it.
    """
    await running(api, namespace, GPU, "kuberay")
    pod = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {"name": "unscheduled", "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "example.com/engine"}]},
    }
    await api.create(PODS, pod, manager="test")
    return {
        "NAMESPACE": namespace,
        "MODEL": "m",
        "md NAME": "md m",
        "ipc NAME": "ipc kuberay",
        "lease NAME": "lease kubefoundry-core",
        "COMPONENT": "kubefoundry-core",
        "FILE": str(tmp_path / "bundle.tar.gz"),
    }


async def run(suite: Suite, command: str) -> Done:
    """Run a command as administrator of the suite."""
    program, *arguments = shlex.split(command)
    if program == "kubectl":
        result = suite.plane.kubectl(*arguments, check=False)
        return Done(result.returncode, result.stdout, result.stderr)
    assert program == "kubefoundry"
    return await CommandLine.offline(*arguments, "--kubeconfig", str(suite.plane.kubeconfig))


@pytest.mark.parametrize("command", RUN)
async def test_runbook_command_succeeds(suite: Suite, values: dict[str, str], command: str) -> None:
    # an unknown placeholder is a KeyError
    filled = re.sub(r"(\b(md|ipc|lease) )?\b[A-Z]{3,}\b", lambda found: values[found[0]], command)

    done = await run(suite, filled)

    expected = [text.replace("NAMESPACE", values["NAMESPACE"]) for text in RUN[command]]
    missing = [text for text in expected if text not in done.out + done.err]
    assert (done.code, bool(done.out), missing) == (0, True, []), done


def commands_of(document: Path) -> set[str]:
    """Return the commands in the code blocks and in the text of a document."""
    spans = re.findall(r"(?<!`)`([^`]+)`(?!`)", document.read_text())
    codes = [*code_lines(document), *(" ".join(span.split()) for span in spans)]
    return {code for code in codes if " " in code} - LOG_TEXTS


def test_each_runbook_command_is_listed() -> None:
    assert RUN.keys() & NOT_RUN.keys() == set()
    assert commands_of(DOCUMENT) == RUN.keys() | NOT_RUN.keys()


@pytest.mark.parametrize(
    "text",
    ["**Remedy.** `helm rollback\nkubefoundry 1`.\n", "```sh\nhelm rollback kubefoundry 1\n```\n"],
    ids=["text", "block"],
)
def test_new_runbook_command_is_found(tmp_path: Path, text: str) -> None:
    document = tmp_path / "runbooks.md"
    document.write_text(f"{DOCUMENT.read_text()}\n{text}")

    assert commands_of(document) - commands_of(DOCUMENT) == {"helm rollback kubefoundry 1"}
