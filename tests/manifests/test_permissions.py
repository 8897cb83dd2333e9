"""What a component's account may not do (contract §6), asked of the real authorizer."""

from __future__ import annotations

import pytest

from kubefoundry_demo.control_plane import ControlPlane
from kubefoundry_demo.suite import COMPONENTS, NAMESPACE, Suite

pytestmark = pytest.mark.integration

UPSTREAM = {
    "kaito": "workspaces.kaito.sh",
    "dynamo": "dynamographdeployments.nvidia.com",
    "kuberay": "rayservices.ray.io",
}
OPERATORS = {
    "kaito": "kaito-workspace",
    "dynamo": "dynamo-platform-dynamo-operator-controller-manager",
    "kuberay": "kuberay-operator",
}
"""Deployments of the upstream operators."""

HELPERS = {"kaito"}
"""Providers that make ConfigMaps."""

components = pytest.mark.parametrize("name", COMPONENTS)


def may(
    plane: ControlPlane, name: str, verb: str, resource: str, *, namespace: str = "default", below: str = ""
) -> bool:
    """below: a subresource. What follows a slash in `resource` is a name."""
    program = f"kubefoundry-provider-{name}" if name in UPSTREAM else f"kubefoundry-{name}"
    account = f"--as=system:serviceaccount:{NAMESPACE}:{program}"
    part = [f"--subresource={below}"] if below else []
    done = plane.kubectl("auth", "can-i", verb, resource, account, *part, "-n", namespace, check=False)
    return done.stdout.strip() == "yes"


@components
def test_it_reads_no_secret_but_core_its_own(suite: Suite, name: str) -> None:
    own = may(suite.plane, name, "get", "secrets/kubefoundry-core-tls", namespace=NAMESPACE)

    assert own == (name == "core")
    for verb in ("get", "list", "watch"):
        assert not may(suite.plane, name, verb, "secrets")
        assert not may(suite.plane, name, verb, "secrets", namespace=NAMESPACE)


@components
@pytest.mark.parametrize("verb", ["get", "create", "patch", "delete"])
def test_it_touches_no_other_providers_kind(suite: Suite, name: str, verb: str) -> None:
    assert {kind for kind in UPSTREAM.values() if may(suite.plane, name, verb, kind)} == (
        {UPSTREAM[name]} if name in UPSTREAM else set()
    )


@components
def test_it_registers_no_other_provider(suite: Suite, name: str) -> None:
    assert {
        provider
        for provider in UPSTREAM
        if may(suite.plane, name, "patch", f"inferenceproviderconfigs.kubefoundry.ai/{provider}")
    } == ({name} & set(UPSTREAM))


@components
def test_it_makes_and_deletes_no_model_deployment(suite: Suite, name: str) -> None:
    for verb in ("create", "update", "delete"):
        assert not may(suite.plane, name, verb, "modeldeployments.kubefoundry.ai")


@components
def test_it_writes_config_maps_only_where_it_makes_some(suite: Suite, name: str) -> None:
    for verb in ("create", "patch", "delete"):
        assert may(suite.plane, name, verb, "configmaps") == (name in HELPERS)


@components
def test_it_looks_at_no_deployment_but_its_operators(suite: Suite, name: str) -> None:
    watched = {
        operator
        for operator in OPERATORS.values()
        if may(suite.plane, name, "watch", f"deployments.apps/{operator}")
    }

    assert watched == ({OPERATORS[name]} if name in OPERATORS else set())
    for verb in ("list", "create", "update", "patch", "delete"):
        assert not may(suite.plane, name, verb, "deployments.apps")


@components
def test_it_watches_pods_only_to_tell_why_a_model_does_not_serve(suite: Suite, name: str) -> None:
    for verb in ("list", "watch"):
        assert may(suite.plane, name, verb, "pods") == (name in UPSTREAM)
    assert not may(suite.plane, name, "delete", "pods")
    for verb, resource, below in (
        ("get", "pods", "log"),
        ("create", "pods", "exec"),
        ("get", "services", "proxy"),
    ):
        assert not may(suite.plane, name, verb, resource, below=below)


@components
def test_it_reads_of_services_only_their_addresses_and_of_namespaces_only_their_labels(
    suite: Suite, name: str
) -> None:
    assert may(suite.plane, name, "get", "services") == (name in UPSTREAM)
    assert may(suite.plane, name, "watch", "namespaces") == (name in UPSTREAM)
    for verb in ("create", "update", "patch", "delete"):
        assert not may(suite.plane, name, verb, "services")
        assert not may(suite.plane, name, verb, "namespaces")
