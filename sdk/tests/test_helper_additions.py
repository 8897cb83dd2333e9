"""Fields that others added to helpers, as their managedFields show them."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.write.additions import Addition, added, redirecting, text, together
from kubefoundry_sdk._provider.write.server_values import ALLOCATED

OURS = "direct-provider"


def helper(kind: str, applied: Object, changed: Object, fields: dict[str, Any]) -> tuple[Object, Object]:
    """A helper as it was applied, and as another manager has changed it."""
    manifest = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "h"}, **applied}
    own: Object = {f"f:{key}": {f"f:{name}": {} for name in value} for key, value in applied.items()}
    managed = [
        {"manager": OURS, "operation": "Apply", "apiVersion": "v1", "fieldsV1": own},
        {"manager": "editor", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields},
    ]
    return manifest, {**manifest, **changed, "metadata": {"name": "h", "managedFields": managed}}


@pytest.mark.parametrize(
    ("kind", "applied", "changed", "fields", "paths"),
    [
        pytest.param(
            "ConfigMap",
            {"data": {"a": "1"}},
            {"data": {"a": "1", "image": "2"}},
            {"f:data": {"f:image": {}}},
            ["data.image"],
            id="key",
        ),
        pytest.param(
            "Service",
            {"spec": {"selector": {"app": "m"}}},
            {"spec": {"selector": {"app": "m"}, "externalIPs": ["192.0.2.1"]}},
            {"f:spec": {"f:externalIPs": {}}},
            ["spec.externalIPs"],
            id="external address",
        ),
        pytest.param(
            "Service",
            {"spec": {"selector": {"app": "m"}}},
            {
                "spec": {
                    "selector": {"app": "m"},
                    "clusterIP": "10.0.0.7",
                    "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}],
                    "sessionAffinity": "None",
                    "type": "ClusterIP",
                }
            },
            {
                "f:spec": {
                    "f:clusterIP": {},
                    "f:ports": {'k:{"port":80,"protocol":"TCP"}': {"f:nodePort": {}}},
                    "f:sessionAffinity": {},
                    "f:type": {},
                }
            },
            ["spec.ports"],
            id="port, beside what Kubernetes fills in",
        ),
        pytest.param(
            "PersistentVolumeClaim",
            {"spec": {"accessModes": ["ReadWriteOnce"]}},
            {"spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv", "volumeMode": "Filesystem"}},
            {"f:spec": {"f:volumeName": {}, "f:volumeMode": {}}},
            [],
            id="bound volume",
        ),
    ],
)
def test_addition_to_a_helper_is_named(
    kind: str, applied: Object, changed: Object, fields: dict[str, Any], paths: list[str]
) -> None:
    manifest, live = helper(kind, applied, changed, fields)

    found = added(manifest, live, OURS, ALLOCATED.get(kind, ()))

    assert [addition.path for addition in found] == paths


def test_text_names_at_most_five_objects() -> None:
    texts = [text(f"ConfigMap 'c{at}'", [Addition("data.x", "editor", False)]) for at in range(7)]

    assert together(["", texts[0], ""]) == texts[0]
    assert together([*texts[:2]]) == f"{texts[0]}; {texts[1]}"
    assert together(texts).endswith(f"{texts[4]}; others added fields to 2 more objects")


@pytest.mark.parametrize(
    ("kind", "applied", "live", "is_redirected"),
    [
        pytest.param("Service", {}, {"type": "ExternalName"}, True, id="others"),
        pytest.param("Service", {}, {"type": "NodePort"}, False, id="more ways in"),
        pytest.param("Service", {"type": "ExternalName"}, {"type": "ExternalName"}, False, id="ours"),
        pytest.param("Workspace", {}, {"type": "ExternalName"}, False, id="another kind"),
        pytest.param("Service", "x", "y", False, id="a record that somebody made up"),
    ],
)
def test_redirected_service_reaches_other_programs(
    kind: str, applied: Any, live: Any, is_redirected: bool
) -> None:
    why = redirecting("Service 'm'", {"kind": kind, "spec": applied}, {"kind": kind, "spec": live})

    assert bool(why) == is_redirected
