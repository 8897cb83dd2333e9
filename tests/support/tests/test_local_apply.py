"""Manifests are applied as kubectl would apply them on the server, without a process for each."""

from __future__ import annotations

import pytest
import yaml

from kubefoundry_local.apply import apply
from kubefoundry_local.control_plane import CannotRun, ControlPlane
from kubefoundry_sdk._api.kinds import CONFIG_MAPS
from kubefoundry_sdk._cluster.client import Client

pytestmark = pytest.mark.integration


def config_map(name: str, namespace: str, **data: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


async def test_local_apply_keeps_fields_of_others(cluster: ControlPlane, api: Client, namespace: str) -> None:
    apply(cluster, [config_map("ours", namespace, a="1", b="1")])
    cluster.kubectl("label", "configmap/ours", "theirs=kept", "-n", namespace)

    apply(cluster, [config_map("ours", namespace, a="2")])

    found = await api.get(CONFIG_MAPS, "ours", namespace)
    assert found["data"] == {"a": "2"}
    assert found["metadata"]["labels"] == {"theirs": "kept"}


async def test_local_apply_and_kubectl_take_turns(cluster: ControlPlane, api: Client, namespace: str) -> None:
    apply(cluster, [config_map("ours", namespace, a="1", b="1")])

    applied = yaml.safe_dump(config_map("ours", namespace, a="2"))
    cluster.kubectl("apply", "--server-side", "-f", "-", input=applied)

    assert (await api.get(CONFIG_MAPS, "ours", namespace))["data"] == {"a": "2"}


def test_objects_of_several_groups_with_and_without_namespace(cluster: ControlPlane, namespace: str) -> None:
    name = f"role-{namespace}"
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}

    apply(cluster, [{**role, "rules": []}, config_map("one", namespace), config_map("two", namespace)])

    cluster.kubectl("get", f"clusterrole/{name}")
    cluster.kubectl("get", "configmap/one", "configmap/two", "-n", namespace)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (config_map("one", "not-there"), 'namespaces \\"not-there\\" not found'),
        ({**config_map("one", "default"), "dada": {}}, "dada: field not declared in schema"),
    ],
)
def test_refusal_names_the_object_and_the_reason(
    cluster: ControlPlane, document: dict[str, object], said: str
) -> None:
    with pytest.raises(CannotRun, match="configmaps/one: ") as refused:
        apply(cluster, [document])

    assert said in str(refused.value)


def test_missing_kind_is_named(cluster: ControlPlane) -> None:
    document = {**config_map("one", "default"), "kind": "ConfigMaps"}

    with pytest.raises(CannotRun, match=r"^ConfigMaps one: the control plane has no such kind in v1$"):
        apply(cluster, [document])
