"""The objects of releases: who owns them, what is refused, what survives, and the commands of docs/install.md."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kubefoundry_core.webhook_configurations import CONFIGURATION, MUTATING, VALIDATING
from kubefoundry_local.control_plane import ROOT, ControlPlane, control_plane
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, SECRETS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.document_commands import document_commands
from support.helm import CHART, CRD_CHART, OLDEST, VERSION, Helm, build
from support.kubernetes_version import at_least
from support.model_writes import PROVIDERS

pytestmark = [pytest.mark.integration, pytest.mark.apart]

DOCUMENT: Final = ROOT / "docs" / "install.md"
SYSTEM: Final = "kubefoundry-system"
ELSEWHERE: Final = "ml-platform"
CORE: Final = "kubefoundry-core"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with CRDs that kubectl applied."""
    with control_plane(tmp_path_factory.mktemp("plane"), ["--all-controllers"]) as opened:
        yield opened


@pytest.fixture
def helm(cluster: ControlPlane, tmp_path: Path) -> Iterator[Helm]:
    """Helm, whose releases are uninstalled at the end."""
    opened = Helm(build(), tmp_path, cluster.kubeconfig)
    yield opened
    for release in json.loads(opened("list", "--all-namespaces", "--output", "json").stdout):
        opened("uninstall", release["name"], "--namespace", release["namespace"])


def install(helm: Helm, name: str, chart: Path, *arguments: str, namespace: str = ELSEWHERE) -> None:
    helm("install", name, str(chart), "--namespace", namespace, "--create-namespace", *arguments)


async def test_second_release_is_refused_by_name(api: Client, helm: Helm) -> None:
    install(helm, "models", CHART)

    second = helm("install", "other", str(CHART), "--namespace", "default", check=False)

    message = (
        f"belongs to release models in namespace {ELSEWHERE}, and a cluster has one: upgrade that release"
    )
    assert (second.returncode, message in second.stderr) == (1, True), second.stderr
    assert (await api.list(DEPLOYMENTS, "default"))[0] == []


async def test_two_releases_may_have_different_components(api: Client, helm: Helm) -> None:
    install(helm, "models", CHART, "--set", "providers.kaito.enabled=false")
    off = ["core", "selector", *(f"providers.{name}" for name in PROVIDERS if name != "kaito")]

    install(helm, "kaito", CHART, "--set", ",".join(f"{path}.enabled=false" for path in off))

    deployments = await api.list(DEPLOYMENTS, ELSEWHERE)
    owners = {obj["metadata"]["name"]: owner(obj) for obj in deployments[0]}
    assert owners["kubefoundry-provider-kaito"] == "kaito"
    assert owners[CORE] == "models"


def owner(obj: Object) -> str:
    return str(obj["metadata"]["annotations"]["meta.helm.sh/release-name"])


async def test_values_of_controllers_survive_an_upgrade(
    cluster: ControlPlane, api: Client, helm: Helm
) -> None:
    """caBundle and match conditions are core's, replicas an autoscaler's if the value is null."""
    values = ["--set", "selector.replicas=null"]
    install(helm, "models", CHART, *values)
    cluster.kubectl("scale", "deployment/kubefoundry-selector", "--replicas=3", "-n", ELSEWHERE)
    conditions = [{"name": "mine", "expression": "true"}] if at_least("1.28") else []
    theirs = {"clientConfig": {"caBundle": "Cg=="}} | ({"matchConditions": conditions} if conditions else {})
    for kind in (MUTATING, VALIDATING):
        await apply_to_webhooks(api, kind, theirs)

    helm("upgrade", "models", str(CHART), "--namespace", ELSEWHERE, *values, "--set", "logFormat=text")

    selector = await api.get(DEPLOYMENTS, "kubefoundry-selector", ELSEWHERE)
    assert selector["spec"]["replicas"] == 3
    assert "--log-format=text" in selector["spec"]["template"]["spec"]["containers"][0]["args"]
    for kind in (MUTATING, VALIDATING):
        for webhook in (await api.get(kind, CONFIGURATION))["webhooks"]:
            assert webhook["clientConfig"]["caBundle"] == "Cg=="
            assert webhook.get("matchConditions", []) == conditions


async def apply_to_webhooks(api: Client, kind: Kind, fields: Object) -> None:
    """Apply fields to every webhook, as core does it."""
    live = await api.get(kind, CONFIGURATION)
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": CONFIGURATION},
        "webhooks": [{"name": webhook["name"], **fields} for webhook in live["webhooks"]],
    }
    await api.apply(kind, body, manager="kubefoundry-core")


@pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy")
async def test_release_secrets_stay_small(api: Client, helm: Helm) -> None:
    """The API server refuses a Secret of more than 1 MiB. That of the CRDs has 155 KiB."""
    policies = ["configMapPolicy", "providerPolicy", "ceilings", "secretPolicy", "directPolicy"]
    everything = ["dashboard", "llamaStack", "networkPolicies", "secretCheck", "storageClaims", *policies]
    install(helm, "models", CHART, "--set", ",".join(f"{name}.enabled=true" for name in everything))
    install(helm, "crds", CRD_CHART, "--take-ownership", "--set", "llamaStack=true")

    secrets = await api.list(SECRETS, ELSEWHERE)

    sizes = {owned["metadata"]["name"]: len(owned["data"]["release"]) for owned in secrets[0]}
    assert set(sizes) == {"sh.helm.release.v1.crds.v1", "sh.helm.release.v1.models.v1"}
    assert max(sizes.values()) < 256 * 1024


async def test_commands_of_the_document_install_and_go_back(
    cluster: ControlPlane, api: Client, helm: Helm, tmp_path: Path
) -> None:
    cluster.kubectl("delete", "-k", str(ROOT / "crds"), "--ignore-not-found")
    values = document_values(tmp_path)
    early = helm("install", "early", str(CHART), "--namespace", "default", "--dry-run=server")

    for command in [*commands("With Helm"), *commands("Upgrade with Helm")]:
        run(cluster, helm, command, values)
    core = await api.get(DEPLOYMENTS, CORE, SYSTEM)
    names = {obj["metadata"]["name"] for obj in (await api.list(DEPLOYMENTS, SYSTEM))[0]}
    for command in commands("Uninstall with Helm"):
        run(cluster, helm, command, values)

    assert "The CRDs are missing" in early.stdout
    assert core["spec"]["template"]["spec"]["containers"][0]["image"].startswith(
        "registry.example.com/kubefoundry/core:"
    )
    assert "kubefoundry-dashboard" in names
    assert "kubefoundry-provider-dynamo" not in names
    assert (await api.list(DEPLOYMENTS, SYSTEM))[0] == []
    assert (
        json.loads(helm("list", "--namespace", SYSTEM, "--output", "json").stdout)[0]["name"]
        == "kubefoundry-crds"
    )


async def test_kubectl_sees_no_difference_between_charts_and_manifests(
    cluster: ControlPlane, helm: Helm
) -> None:
    install_file = str(ROOT / "manifests" / "install.yaml")
    cluster.kubectl("apply", "-f", install_file)
    # kubectl reports a PodDisruptionBudget as configured each time
    again = cluster.kubectl("apply", "-f", install_file).stdout.splitlines()
    crds = helm("template", "x", str(CRD_CHART), *OLDEST, "--set", "keep=false").stdout
    rest = helm("template", "x", str(CHART), *OLDEST, "--namespace", SYSTEM).stdout

    applied = cluster.kubectl("apply", "-f", "-", input=f"{crds}\n---\n{rest}").stdout.splitlines()

    assert {*applied, f"namespace/{SYSTEM} unchanged"} == set(again)


async def test_kubectl_installation_is_taken_over(
    cluster: ControlPlane, api: Client, helm: Helm, tmp_path: Path
) -> None:
    for command in commands("With kubectl"):
        run(cluster, helm, command, tmp_path)
    before = await api.get(DEPLOYMENTS, CORE, SYSTEM)
    (tmp_path / "values.yaml").write_text("{}")

    refused = helm("install", "kubefoundry", str(CHART), "--namespace", SYSTEM, check=False)
    for command in commands("From kubectl to Helm"):
        run(cluster, helm, command, tmp_path / "values.yaml")

    assert (refused.returncode, "invalid ownership metadata" in refused.stderr) == (1, True)
    after = await api.get(DEPLOYMENTS, CORE, SYSTEM)
    assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
    assert owner(after) == "kubefoundry"


@pytest.mark.skipif(
    os.environ.get(VERSION) != "helm3", reason="only make test-helm3 builds both versions of Helm"
)
async def test_helm_4_upgrades_a_release_of_helm_3(cluster: ControlPlane, api: Client, helm: Helm) -> None:
    install(helm, "models", CHART)
    theirs = {"clientConfig": {"caBundle": "Cg=="}}
    for kind in (MUTATING, VALIDATING):
        await apply_to_webhooks(api, kind, theirs)
    newer = Helm(build("helm4"), helm.folder, cluster.kubeconfig)

    newer("upgrade", "models", str(CHART), "--namespace", ELSEWHERE, "--set", "logFormat=text")
    newer("rollback", "models", "1", "--namespace", ELSEWHERE)

    core = await api.get(DEPLOYMENTS, CORE, ELSEWHERE)
    assert "--log-format=json" in core["spec"]["template"]["spec"]["containers"][0]["args"]
    for webhook in (await api.get(VALIDATING, CONFIGURATION))["webhooks"]:
        assert webhook["clientConfig"]["caBundle"] == "Cg=="


def commands(section: str) -> list[list[str]]:
    return document_commands(DOCUMENT, section, "helm", "kubectl")


def document_values(folder: Path) -> Path:
    """Write the values of the document into a file, and return it."""
    text = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.S)[0]
    (folder / "values.yaml").write_text(text)
    return folder / "values.yaml"


def run(cluster: ControlPlane, helm: Helm, command: list[str], values: Path) -> None:
    """Run a command of the document, with its paths below the repository and its file of values."""
    program, *words = command
    words = [str(ROOT / word) if word.startswith(("charts/", "manifests/")) else word for word in words]
    words = [str(values) if word == "values.yaml" else word for word in words]
    if program == "helm":
        helm(*words)
    else:
        cluster.kubectl(*words)
