"""Every supported API server sends the types by which KubeFoundry recognizes its answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

import pytest

from kubefoundry_cli.failure import not_served
from kubefoundry_cli.install.ownership import is_of_kubectl
from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_local.suite import PROBE
from kubefoundry_sdk._api.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    MODEL_DEPLOYMENTS,
    NAMESPACES,
    PROVIDER_CONFIGS,
    Kind,
    Object,
)
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.registrations import register
from support.waiting import SECONDS

pytestmark = pytest.mark.integration


API_SERVICES: Final = Kind("apiregistration.k8s.io", "v1", "apiservices", "APIService")


def config_map(namespace: str, **metadata: object) -> Object:
    """Return an empty ConfigMap."""
    meta = {"name": "a", "namespace": namespace, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


async def test_conflict_names_the_fields_of_others(cluster: ControlPlane, api: Client) -> None:
    config = await register(api, "typed", ("true", 0))
    body = {
        "apiVersion": config["apiVersion"],
        "kind": config["kind"],
        "metadata": {"name": "typed"},
        "spec": {**config["spec"], "selectionRules": [{"condition": "false", "priority": 1}]},
    }

    with pytest.raises(ApiError) as raised:
        await api.apply(PROVIDER_CONFIGS, body, manager="other-provider", force=False)

    assert raised.value.conflicting_fields == (".spec.selectionRules",)
    await api.delete(PROVIDER_CONFIGS, "typed", None, uid=config["metadata"]["uid"])


async def test_conflict_names_the_managers_of_others(
    cluster: ControlPlane, api: Client, namespace: str
) -> None:
    body = config_map(namespace)
    await api.create(CONFIG_MAPS, {**body, "data": {"a": "1"}}, manager="kubectl")

    with pytest.raises(ApiError) as updated:
        await api.apply(CONFIG_MAPS, {**body, "data": {"a": "2"}}, manager="test", force=False)
    await api.apply(CONFIG_MAPS, {**body, "data": {"b": "1"}}, manager="kubectl", force=False)
    with pytest.raises(ApiError) as applied:
        await api.apply(CONFIG_MAPS, {**body, "data": {"b": "2"}}, manager="test", force=False)

    assert is_of_kubectl(updated.value)
    assert not is_of_kubectl(applied.value)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(Kind("example.com", "v1", "things", "Thing"), True, id="unknown group"),
        pytest.param(replace(MODEL_DEPLOYMENTS, version="v9"), True, id="unknown version of a CRD"),
        pytest.param(replace(MODEL_DEPLOYMENTS, plural="things"), True, id="unknown kind of our group"),
        pytest.param(replace(DEPLOYMENTS, version="v9"), True, id="unknown version of a built-in group"),
        pytest.param(replace(CONFIG_MAPS, plural="things"), True, id="unknown built-in kind"),
        pytest.param(MODEL_DEPLOYMENTS, False, id="missing object"),
        pytest.param(CONFIG_MAPS, False, id="missing built-in object"),
    ],
)
async def test_missing_kind_differs_from_a_missing_object(
    cluster: ControlPlane, api: Client, namespace: str, kind: Kind, expected: bool
) -> None:
    with pytest.raises(ApiError) as raised:
        await api.get(kind, "a", namespace)

    assert not_served(raised.value) is expected


async def test_missing_namespace_is_no_missing_kind(cluster: ControlPlane, api: Client) -> None:
    with pytest.raises(ApiError) as raised:
        await api.create(CONFIG_MAPS, config_map("no-such-namespace"), manager="test")

    assert (raised.value.not_found, not_served(raised.value)) == (True, False)


async def test_new_object_names_the_terminating_namespace(
    cluster: ControlPlane, api: Client, namespace: str
) -> None:
    held = await api.create(
        CONFIG_MAPS, config_map(namespace, finalizers=["example.com/held"]), manager="test"
    )
    live = await api.get(NAMESPACES, namespace)
    await api.delete(NAMESPACES, namespace, None, uid=live["metadata"]["uid"])

    with pytest.raises(ApiError) as raised:
        await api.create(CONFIG_MAPS, config_map(namespace, name="b"), manager="test")

    assert (raised.value.code, raised.value.in_deleted_namespace) == (403, True)
    release = [{"op": "remove", "path": "/metadata/finalizers"}]
    await api.json_patch(CONFIG_MAPS, held["metadata"]["name"], namespace, release, manager="test")


async def test_plain_503_of_the_aggregator_is_a_refusal(
    cluster: ControlPlane, api: Client, namespace: str
) -> None:
    """It is a plain text. `Audit-Id` distinguishes it from that of a proxy, which is no answer of an API server."""
    service = {"name": "missing", "namespace": namespace}
    spec = {"group": f"{namespace}.example.com", "version": "v1", "service": service}
    body = {
        "apiVersion": API_SERVICES.api_version,
        "kind": API_SERVICES.kind,
        "metadata": {"name": f"v1.{namespace}.example.com"},
        "spec": {
            **spec,
            "groupPriorityMinimum": 10,
            "versionPriority": 10,
            "insecureSkipTLSVerify": True,
        },
    }
    created = await api.create(API_SERVICES, body, manager="test")

    refusal = await _refusal(api, f"/apis/{namespace}.example.com/v1/things")

    assert (refusal.code, refusal.message.strip()) == (503, "service unavailable")
    await api.delete(API_SERVICES, created["metadata"]["name"], None, uid=created["metadata"]["uid"])


async def _refusal(api: Client, path: str) -> ApiError:
    """Return the answer to a request once the API server knows the group."""
    async with asyncio.timeout(SECONDS):
        while True:
            with pytest.raises(ApiError) as raised:
                await api.read(path)
            if not raised.value.not_found:
                return raised.value
            await asyncio.sleep(PROBE)
