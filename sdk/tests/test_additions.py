"""Fields that others added to an upstream object, as its managedFields show them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.managed_fields import compact
from kubefoundry_sdk._provider.write.additions import Addition, added, text

OURS = "direct-provider"
MANIFEST: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "m", "namespace": "n"},
    "spec": {
        "replicas": 1,
        "template": {
            "metadata": {"labels": {"app": "m"}},
            "spec": {
                "containers": [{"name": "engine", "image": "a:1", "env": [{"name": "HOME", "value": "/x"}]}],
                "volumes": [{"name": "cache", "emptyDir": {}}],
            },
        },
    },
}
ENGINE = 'k:{"name":"engine"}'
OWNED: dict[str, Any] = {
    "f:spec": {
        "f:replicas": {},
        "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {
                "f:containers": {
                    ENGINE: {
                        ".": {},
                        "f:name": {},
                        "f:image": {},
                        "f:env": {'k:{"name":"HOME"}': {".": {}, "f:name": {}, "f:value": {}}},
                    }
                },
                "f:volumes": {'k:{"name":"cache"}': {".": {}, "f:name": {}, "f:emptyDir": {}}},
            },
        },
    }
}


def pod(live: Object) -> Any:
    return live["spec"]["template"]["spec"]


def extended(change: Any, fields: dict[str, Any], manager: str = "kubectl-patch", **entry: str) -> Object:
    """The object with a change to its pod template, and the managedFields entry for it below the pod's spec."""
    live = copy.deepcopy(MANIFEST)
    change(pod(live))
    theirs = {"f:spec": {"f:template": {"f:spec": fields}}}
    live["metadata"]["managedFields"] = [
        {"manager": OURS, "operation": "Apply", "fieldsV1": OWNED},
        {"manager": manager, "operation": "Update", "fieldsV1": theirs, **entry},
    ]
    return live


def in_engine(**values: Any) -> Any:
    return lambda spec: spec["containers"][0].update(values)


@pytest.mark.parametrize(
    ("change", "fields", "path", "replaces"),
    [
        pytest.param(
            in_engine(command=["other"]),
            {"f:containers": {ENGINE: {"f:command": {}}}},
            "spec.template.spec.containers[engine].command",
            True,
            id="command",
        ),
        pytest.param(
            in_engine(args=["--other"]),
            {"f:containers": {ENGINE: {"f:args": {}}}},
            "spec.template.spec.containers[engine].args",
            True,
            id="arguments",
        ),
        pytest.param(
            lambda spec: spec.update(initContainers=[{"name": "x", "image": "x", "command": ["y"]}]),
            {
                "f:initContainers": {
                    ".": {},
                    'k:{"name":"x"}': {".": {}, "f:name": {}, "f:image": {}, "f:command": {}},
                }
            },
            "spec.template.spec.initContainers",
            False,
            id="init containers",
        ),
        pytest.param(
            lambda spec: spec["containers"].append({"name": "side", "image": "x", "command": ["y"]}),
            {"f:containers": {'k:{"name":"side"}': {".": {}, "f:name": {}, "f:command": {}}}},
            "spec.template.spec.containers[side]",
            False,
            id="container",
        ),
        pytest.param(
            lambda spec: spec["containers"][0]["env"].append({"name": "A", "value": ""}),
            {"f:containers": {ENGINE: {"f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}}}}}},
            "spec.template.spec.containers[engine].env[A]",
            False,
            id="variable",
        ),
        pytest.param(
            lambda spec: spec.update(shareProcessNamespace=True),
            {"f:shareProcessNamespace": {}},
            "spec.template.spec.shareProcessNamespace",
            False,
            id="shared processes",
        ),
        pytest.param(
            lambda spec: spec["volumes"][0]["emptyDir"].update(sizeLimit="1Gi"),
            {"f:volumes": {'k:{"name":"cache"}': {"f:emptyDir": {"f:sizeLimit": {}}}}},
            "spec.template.spec.volumes[cache].emptyDir.sizeLimit",
            False,
            id="below an empty map of ours",
        ),
    ],
)
def test_added_field_is_named_with_its_manager(
    change: Any, fields: dict[str, Any], path: str, replaces: bool
) -> None:
    live = extended(change, fields)

    assert added(MANIFEST, live, OURS) == [Addition(path, "kubectl-patch", replaces)]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"f:dnsPolicy": {}, "f:restartPolicy": {}, "f:securityContext": {}}, id="pod"),
        pytest.param(
            {"f:containers": {ENGINE: {"f:imagePullPolicy": {}, "f:resources": {}}}}, id="container"
        ),
    ],
)
def test_default_of_the_api_server_is_not_named(fields: dict[str, Any]) -> None:
    """Another manager owns it once it applies a whole object that it has read."""

    def defaulted(spec: Any) -> None:
        spec.update(dnsPolicy="ClusterFirst", restartPolicy="Always", securityContext={})
        spec["containers"][0].update(imagePullPolicy="IfNotPresent", resources={})

    assert added(MANIFEST, extended(defaulted, fields), OURS) == []


def test_field_that_nobody_owns_is_admissions() -> None:
    """The API server records no owner for a default, or for a field that a webhook adds to a write."""
    live = extended(in_engine(command=["wrapped"]), {})

    assert added(MANIFEST, live, OURS) == []


@pytest.mark.parametrize("subresource", ["status", "scale"])
def test_write_to_a_subresource_adds_nothing(subresource: str) -> None:
    live = extended(
        in_engine(command=["x"]), {"f:containers": {ENGINE: {"f:command": {}}}}, subresource=subresource
    )

    assert added(MANIFEST, live, OURS) == []


def test_restart_by_kubectl_is_no_addition() -> None:
    live = copy.deepcopy(MANIFEST)
    at = "kubectl.kubernetes.io/restartedAt"
    live["spec"]["template"]["metadata"]["annotations"] = {at: "2026-01-01T00:00:00Z"}
    theirs: dict[str, Any] = {
        "f:spec": {"f:template": {"f:metadata": {"f:annotations": {".": {}, f"f:{at}": {}}}}}
    }
    live["metadata"]["managedFields"] = [
        {"manager": OURS, "operation": "Apply", "fieldsV1": OWNED},
        {"manager": "kubectl-rollout", "operation": "Update", "fieldsV1": theirs},
    ]

    assert added(MANIFEST, live, OURS) == []


def test_update_under_our_name_is_somebody_elses() -> None:
    """The provider only applies; any client may choose its name."""
    live = extended(in_engine(command=["x"]), {"f:containers": {ENGINE: {"f:command": {}}}}, OURS)

    [addition] = added(MANIFEST, live, OURS)

    assert (addition.path, addition.writer) == (
        "spec.template.spec.containers[engine].command",
        "an unknown field manager",
    )


def test_reset_of_managed_fields_names_no_default() -> None:
    """The API server then makes one manager the owner of everything that was there."""
    live = extended(
        in_engine(command=["x"]), {"f:containers": {ENGINE: {"f:command": {}}}}, "before-first-apply"
    )
    pod(live)["numOfHosts"] = 1
    fields = live["metadata"]["managedFields"][1]["fieldsV1"]
    fields["f:spec"]["f:template"]["f:spec"]["f:numOfHosts"] = {}

    assert added(MANIFEST, live, OURS) == [
        Addition("spec.template.spec.containers[engine].command", "an unknown field manager", False)
    ]


def test_apply_under_our_name_is_somebody_elses() -> None:
    live = extended(in_engine(command=["x"]), {})
    fields = copy.deepcopy(OWNED)
    fields["f:spec"]["f:template"]["f:spec"]["f:containers"][ENGINE]["f:command"] = {}
    live["metadata"]["managedFields"][0]["fieldsV1"] = fields

    assert [addition.path for addition in added(MANIFEST, live, OURS)] == [
        "spec.template.spec.containers[engine].command"
    ]


def test_forged_record_hides_no_addition() -> None:
    live = extended(in_engine(command=["x"]), {"f:containers": {ENGINE: {"f:command": {}}}})
    forged = copy.deepcopy(MANIFEST)
    pod(forged)["containers"][0]["command"] = ["x"]

    assert [addition.replaces for addition in added(forged, live, OURS)] == [True]


GROUPS: Object = {
    "apiVersion": "ray.io/v1",
    "kind": "RayService",
    "metadata": {"name": "m"},
    "spec": {"groups": [{"groupName": "gpu", "template": {"containers": [{"name": "ray", "image": "a"}]}}]},
}


def in_groups(**values: Any) -> Object:
    """An atomic list of ours that somebody else has written."""
    live = copy.deepcopy(GROUPS)
    live["spec"]["groups"][0]["template"]["containers"][0].update(values)
    live["metadata"]["managedFields"] = [
        {"manager": OURS, "operation": "Apply", "fieldsV1": {"f:spec": {".": {}}}},
        {"manager": "editor", "operation": "Update", "fieldsV1": {"f:spec": {"f:groups": {}}}},
    ]
    return live


def test_variables_in_a_list_that_has_one_owner_are_named() -> None:
    assert added(GROUPS, in_groups(env=[{"name": "A", "value": "b"}]), OURS) == [
        Addition("spec.groups[0].template.containers[ray].env", "editor", False)
    ]


def test_container_in_a_list_that_has_one_owner_is_named() -> None:
    live = in_groups()
    live["spec"]["groups"][0]["template"]["containers"].append({"name": "side"})

    assert added(GROUPS, live, OURS) == [
        Addition("spec.groups[0].template.containers[side]", "editor", False)
    ]


def test_command_in_a_list_that_has_one_owner_is_named() -> None:
    assert added(GROUPS, in_groups(command=["x"]), OURS) == [
        Addition("spec.groups[0].template.containers[ray].command", "editor", True)
    ]


@pytest.mark.parametrize("group", ["gpu", "other"])
def test_appended_group_of_pods_is_named(group: str) -> None:
    live = in_groups()
    live["spec"]["groups"].append({"groupName": group, "template": {"containers": []}})

    assert added(GROUPS, live, OURS) == [Addition("spec.groups[1]", "editor", False)]


@pytest.mark.parametrize("before", [True, False], ids=["before ours", "after ours"])
def test_second_item_of_the_same_name_is_named(before: bool) -> None:
    live = in_groups()
    containers = live["spec"]["groups"][0]["template"]["containers"]
    containers.insert(0 if before else 1, {"name": "ray", "image": "other"})

    assert added(GROUPS, live, OURS) == [Addition("spec.groups[0].template.containers[ray]", "editor", False)]


def test_item_without_a_readable_name_is_named_by_place() -> None:
    live = in_groups()
    live["spec"]["groups"][0]["template"]["containers"] += [{"name": ["ray"]}, "x"]

    assert [found.path for found in added(GROUPS, live, OURS)] == [
        "spec.groups[0].template.containers[1]",
        "spec.groups[0].template.containers[2]",
    ]


def test_operator_that_writes_the_object_back_adds_nothing() -> None:
    """A client in Go writes the zero values of its types, and the CRD's defaults are in there."""
    written = in_groups(resources={}, stdin=False, creationTimestamp=None, numOfHosts=1)

    assert added(GROUPS, written, OURS) == []


def test_path_that_others_own_is_no_addition() -> None:
    live = copy.deepcopy(GROUPS)
    live["spec"]["scale"] = 3
    live["metadata"]["managedFields"] = [
        {"manager": OURS, "operation": "Apply", "fieldsV1": {"f:spec": {"f:groups": {}}}},
        {"manager": "scaler", "operation": "Update", "fieldsV1": {"f:spec": {"f:scale": {}}}},
    ]

    assert added(GROUPS, live, OURS, ["spec.scale"]) == []
    assert [addition.path for addition in added(GROUPS, live, OURS)] == ["spec.scale"]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"f:spec": {"f:template": {"f:spec": {"f:gone": {}}}}}, id="a field that is gone"),
        pytest.param({"f:spec": {"k:nonsense": {"f:x": {}}, "x": {}}}, id="no key"),
        pytest.param({"f:spec": {"f:template": None}}, id="no map"),
        pytest.param(None, id="none"),
    ],
)
def test_nonsense_in_managed_fields_is_skipped(fields: Any) -> None:
    live = extended(lambda spec: None, {})
    live["metadata"]["managedFields"][1]["fieldsV1"] = fields

    assert added(MANIFEST, live, OURS) == []


def test_deep_fields_are_read_to_a_bounded_depth() -> None:
    fields: dict[str, Any] = {}
    value: dict[str, Any] = {}
    for _ in range(5000):
        fields, value = {"f:a": fields}, {"a": value}
    live = {**MANIFEST, "metadata": {}, "spec": {**MANIFEST["spec"], "template": value}}
    live["metadata"]["managedFields"] = [
        {"manager": OURS, "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": fields}}},
        {"manager": "x", "operation": "Update", "fieldsV1": {"f:spec": {"f:template": fields}}},
    ]

    assert added({**MANIFEST, "spec": {"template": value}}, live, OURS) == []


@pytest.mark.parametrize("changed", ["manifest", "entry"])
def test_fields_of_another_version_are_not_compared(changed: str) -> None:
    live = extended(in_engine(command=["x"]), {"f:containers": {ENGINE: {"f:command": {}}}})
    applied = MANIFEST
    if changed == "manifest":
        applied = {**MANIFEST, "apiVersion": "apps/v1beta1"}
    else:
        live["metadata"]["managedFields"][1]["apiVersion"] = "apps/v1beta1"

    live["metadata"]["managedFields"] = compact(
        live["metadata"]["managedFields"], frozenset({OURS}), content=True
    )

    assert added(applied, live, OURS) == []


def test_store_keeps_the_fields_of_others_for_it() -> None:
    live = extended(in_engine(command=["x"]), {"f:containers": {ENGINE: {"f:command": {}}}})
    live["metadata"]["managedFields"].append(
        {
            "manager": "c",
            "operation": "Update",
            "subresource": "status",
            "fieldsV1": {"f:status": {"f:x": {}}},
        }
    )

    live["metadata"]["managedFields"] = compact(
        live["metadata"]["managedFields"], frozenset({OURS}), content=True
    )

    assert [addition.path for addition in added(MANIFEST, live, OURS)] == [
        "spec.template.spec.containers[engine].command"
    ]
    assert "f:x" not in json.dumps(live["metadata"]["managedFields"])


def test_text_names_at_most_five_fields() -> None:
    additions = [Addition(f"spec.f{at}", "editor", False) for at in range(7)]

    assert text("Deployment 'm'", additions) == (
        "Deployment 'm' has fields that others added: spec.f0, spec.f1, spec.f2, spec.f3, spec.f4 (editor) and 2 "
        "more; they are left as they are"
    )
    assert text("Deployment 'm'", []) == ""
