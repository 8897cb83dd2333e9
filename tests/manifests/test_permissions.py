"""What a component's account may not do (contract §6), asked of the real authorizer."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import COMPONENTS, NAMESPACE, Suite
from kubefoundry_sdk._cluster.client import Client
from support.access import allowed

pytestmark = pytest.mark.integration

UPSTREAM = {
    "kaito": "workspaces.kaito.sh",
    "dynamo": "dynamographdeployments.nvidia.com",
    "kuberay": "rayservices.ray.io",
    "direct": "deployments.apps",
}
OPERATORS = {
    "kaito": "kaito-workspace",
    "dynamo": "dynamo-platform-dynamo-operator-controller-manager",
    "kuberay": "kuberay-operator",
}
"""Deployments of the upstream operators."""

HELPERS = {"kaito"}
"""Providers that make ConfigMaps."""

OF_KUBERNETES = {"direct"}
"""Providers whose upstream kinds are Kubernetes' own: Deployments and Services."""

components = pytest.mark.parametrize("name", COMPONENTS)


async def may(api: Client, name: str, verb: str, resource: str, *, namespace: str = "default") -> bool:
    program = f"kubefoundry-provider-{name}" if name in UPSTREAM else f"kubefoundry-{name}"
    return await allowed(api, program, verb, resource, namespace=namespace)


@components
async def test_component_reads_no_secret_except_core_its_own(suite: Suite, api: Client, name: str) -> None:
    own = await may(api, name, "get", "secrets=kubefoundry-core-tls", namespace=NAMESPACE)

    assert own == (name == "core")
    for verb in ("get", "list", "watch"):
        assert not await may(api, name, verb, "secrets")
        assert not await may(api, name, verb, "secrets", namespace=NAMESPACE)


@components
@pytest.mark.parametrize("verb", ["get", "create", "patch", "delete"])
async def test_provider_may_access_its_own_upstream_kind_only(
    suite: Suite, api: Client, name: str, verb: str
) -> None:
    assert {kind for kind in UPSTREAM.values() if await may(api, name, verb, kind)} == (
        {UPSTREAM[name]} if name in UPSTREAM else set()
    )


@components
async def test_provider_may_register_itself_only(suite: Suite, api: Client, name: str) -> None:
    assert {
        provider
        for provider in UPSTREAM
        if await may(api, name, "patch", f"inferenceproviderconfigs.kubefoundry.ai={provider}")
    } == ({name} & set(UPSTREAM))


@components
async def test_component_may_not_create_or_delete_models(suite: Suite, api: Client, name: str) -> None:
    for verb in ("create", "update", "delete"):
        assert not await may(api, name, verb, "modeldeployments.kubefoundry.ai")


@components
async def test_config_maps_are_writable_for_providers_with_helpers(
    suite: Suite, api: Client, name: str
) -> None:
    for verb in ("create", "patch", "delete"):
        assert await may(api, name, verb, "configmaps") == (name in HELPERS)


@components
async def test_provider_may_watch_its_operators_deployment_only(suite: Suite, api: Client, name: str) -> None:
    if name in OF_KUBERNETES:
        return
    watched = {
        operator
        for operator in OPERATORS.values()
        if await may(api, name, "watch", f"deployments.apps={operator}")
    }

    assert watched == ({OPERATORS[name]} if name in OPERATORS else set())
    for verb in ("list", "create", "update", "patch", "delete"):
        assert not await may(api, name, verb, "deployments.apps")


@components
async def test_provider_may_watch_pods_and_not_enter_them(suite: Suite, api: Client, name: str) -> None:
    for verb in ("list", "watch"):
        assert await may(api, name, verb, "pods") == (name in UPSTREAM)
    for verb, resource in (
        ("delete", "pods"),
        ("get", "pods/log"),
        ("create", "pods/exec"),
        ("get", "services/proxy"),
    ):
        assert not await may(api, name, verb, resource)


@components
async def test_process_reads_service_addresses_and_namespace_labels(
    suite: Suite, api: Client, name: str
) -> None:
    assert await may(api, name, "get", "services") == (name in UPSTREAM)
    assert await may(api, name, "watch", "namespaces") == (name in OPERATORS)
    for verb in ("create", "patch", "delete"):
        assert await may(api, name, verb, "services") == (name in OF_KUBERNETES)
    for verb in ("create", "update", "patch", "delete"):
        assert not await may(api, name, verb, "namespaces")
