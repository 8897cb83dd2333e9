"""Every supported API server sends the types by which KubeFoundry recognizes its answers."""

from __future__ import annotations

import pytest

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_sdk.api.kinds import CONFIG_MAPS, NAMESPACES, PROVIDER_CONFIGS, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError
from support.registrations import register

pytestmark = pytest.mark.integration


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
