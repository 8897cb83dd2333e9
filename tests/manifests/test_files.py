"""What the files in manifests/ state, read as they are: complete, least, and fit for restricted namespaces."""

from __future__ import annotations

import runpy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_core.admission.application import PATIENCE
from kubefoundry_local import suite
from kubefoundry_local.suite import COMPONENTS, manifest

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
GENERATED = {MANIFESTS / "core.yaml", MANIFESTS / "install.yaml"}
OPT_IN = {
    "conversion",
    "secret-check",
    "claims",
    "llamastack",
    "network-policies",
    "openshift-anyuid",
    "config-map-policy",
    "provider-policy",
    "creator-policy",
    "ceilings",
    "secret-policy",
    "direct-policy",
    "dashboard",
    "monitoring",
}
"""Folders with what an installation does not hold."""
Document = dict[str, Any]

components = pytest.mark.parametrize("name", [*COMPONENTS, *suite.OPT_IN])


def every(name: str, kind: str) -> list[Document]:
    return [document for document in manifest(name) if document["kind"] == kind]


def only(name: str, kind: str) -> Document:
    [found] = every(name, kind)
    return found


def pod(name: str) -> Document:
    found: Document = only(name, "Deployment")["spec"]["template"]["spec"]
    return found


def is_aggregated(role: Document) -> bool:
    """Check whether a role is one of users: Kubernetes adds it to its own."""
    return any(
        label.startswith("rbac.authorization.k8s.io/aggregate") for label in role["metadata"]["labels"]
    )


BUNDLE = runpy.run_path(str(MANIFESTS / "bundle.py"))


@pytest.mark.parametrize("name", ["core", "install"])
def test_generated_file_is_up_to_date(name: str) -> None:
    assert (MANIFESTS / f"{name}.yaml").read_text() == BUNDLE[name](), "out of date: make manifests"


def test_install_file_has_every_manifest() -> None:
    parts = {*BUNDLE["CORE"], *BUNDLE["parts"]()[1:]}

    assert {path for path in parts if path.is_relative_to(MANIFESTS)} == {
        path
        for path in MANIFESTS.rglob("*.yaml")
        if path not in GENERATED and path.name != "kustomization.yaml" and path.parent.name not in OPT_IN
    }
    for path in parts:
        assert all(
            {"apiVersion", "kind", "metadata"} <= set(document)
            for document in yaml.safe_load_all(path.read_text())
        )


@pytest.mark.parametrize("name", ["core", "install"])
def test_crds_are_deleted_first(name: str) -> None:
    """Core still runs when `kubectl delete -f` asks it."""
    kinds = [one["kind"] for one in yaml.safe_load_all((MANIFESTS / f"{name}.yaml").read_text())]

    assert kinds[:2] == ["CustomResourceDefinition"] * 2
    assert "CustomResourceDefinition" not in kinds[2:]


def test_frozen_core_delays_a_create_by_4_seconds() -> None:
    """Both webhooks of a ModelDeployment are called one after the other."""
    webhooks = [
        webhook
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        for webhook in only("core", kind)["webhooks"]
        if webhook["rules"][0]["resources"] == ["modeldeployments"]
    ]

    assert len(webhooks) == 2
    assert sum(webhook["timeoutSeconds"] for webhook in webhooks) <= 4
    assert min(webhook["timeoutSeconds"] for webhook in webhooks) > PATIENCE


def test_namespace_asks_for_restricted_pods() -> None:
    labels = yaml.safe_load((MANIFESTS / "namespace.yaml").read_text())["metadata"]["labels"]

    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert labels["pod-security.kubernetes.io/warn"] == "restricted"


@components
def test_pod_is_restricted(name: str) -> None:
    spec = pod(name)
    [container] = spec["containers"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@components
def test_pod_is_probed_and_bounded(name: str) -> None:
    [container] = pod(name)["containers"]
    ports = {port["name"] for port in container["ports"]}

    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "health"}
    assert {"health", "metrics"} <= ports
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert set(container["resources"]["limits"]) == {"memory"}


@components
def test_disruption_takes_one_pod_at_a_time(name: str) -> None:
    labels = only(name, "Deployment")["spec"]["template"]["metadata"]["labels"]
    budget = only(name, "PodDisruptionBudget")["spec"]

    assert budget["maxUnavailable"] == 1
    for selector in (budget["selector"], only(name, "Deployment")["spec"]["selector"]):
        assert selector["matchLabels"].items() <= labels.items()


@components
def test_pod_has_an_account_of_its_own(name: str) -> None:
    account = only(name, "ServiceAccount")["metadata"]
    subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}

    assert pod(name)["serviceAccountName"] == account["name"]
    for kind in ("ClusterRole", "Role"):
        bindings = every(name, f"{kind}Binding")
        assert all(binding["subjects"] == [subject] for binding in bindings)
        bound = [binding["roleRef"]["name"] for binding in bindings]
        own = [role["metadata"]["name"] for role in every(name, kind) if not is_aggregated(role)]
        assert bound == own != []
    others = [only(other, "ServiceAccount")["metadata"]["name"] for other in COMPONENTS if other != name]
    assert account["name"] not in others


@components
def test_image_is_that_of_the_packages_version(name: str) -> None:
    [container] = pod(name)["containers"]
    [program] = container["command"]

    assert container["image"] == f"{program.replace('-', '/', 1)}:{version(program)}"


@components
def test_permissions_hold_no_wildcard(name: str) -> None:
    roles = [role for kind in ("ClusterRole", "Role") for role in every(name, kind)]
    rules = [rule for role in roles for rule in role["rules"]]

    for rule in rules:
        assert all("*" not in rule[field] for field in ("apiGroups", "resources", "verbs")), rule


def test_network_policies_name_ports_and_pods_that_are_there() -> None:
    """A policy that selects nothing, or a port that no pod names, would open or close nothing."""
    text = (MANIFESTS / "network-policies" / "policies.yaml").read_text()
    pods = [only(name, "Deployment")["spec"]["template"] for name in [*COMPONENTS, *suite.OPT_IN]]
    for policy in yaml.safe_load_all(text):
        wanted = policy["spec"]["podSelector"]["matchLabels"].items()
        chosen = [pod for pod in pods if wanted <= pod["metadata"]["labels"].items()]
        assert chosen
        for rule in policy["spec"]["ingress"]:
            for pod in chosen:
                [container] = pod["spec"]["containers"]
                assert {it["port"] for it in rule["ports"]} <= {it["name"] for it in container["ports"]}
