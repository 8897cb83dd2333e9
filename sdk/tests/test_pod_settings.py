"""The settings in `podTemplate` in the pods that a provider renders."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kubefoundry_sdk._api import formats
from kubefoundry_sdk.pod import volume_problems, with_container_settings, with_pod_settings
from kubefoundry_sdk.read_back import pod_fields
from kubefoundry_sdk.testing.generated import deployment

SPEC = {"model": {"id": "m"}, "engine": {"type": "llamacpp"}}
POD = {"containers": [], "securityContext": {"runAsUser": 1}, "volumes": [{"name": "own", "emptyDir": {}}]}
VOLUME = {"name": "w", "persistentVolumeClaim": {"claimName": "c"}}


def stating(**template: Any) -> Any:
    return deployment({**SPEC, "podTemplate": template}).spec


def test_pod_without_settings_is_unchanged() -> None:
    assert with_pod_settings(POD, stating()) == POD
    assert with_container_settings({"name": "a"}, stating(spec={"volumes": [VOLUME]})) == {"name": "a"}


def test_settings_are_merged_into_maps_and_follow_lists() -> None:
    spec = stating(
        spec={"securityContext": {"fsGroup": 2}, "volumes": [VOLUME], "priorityClassName": "high"},
        container={
            "volumeMounts": [{"name": "w", "mountPath": "/w", "readOnly": False}],
            "resourceClaims": [{"name": "g"}],
        },
    )

    pod = with_pod_settings(POD, spec)
    container = with_container_settings({"resources": {"limits": {"a/b": "1"}}}, spec)

    assert pod == {
        "containers": [],
        "securityContext": {"runAsUser": 1, "fsGroup": 2},
        "volumes": [{"name": "own", "emptyDir": {}}, VOLUME],
        "priorityClassName": "high",
    }
    assert container == {
        "resources": {"limits": {"a/b": "1"}, "claims": [{"name": "g"}]},
        "volumeMounts": [{"name": "w", "mountPath": "/w"}],
    }


def test_pod_without_engine_has_no_volumes_and_claims() -> None:
    spec = stating(
        spec={
            "volumes": [VOLUME],
            "resourceClaims": [{"name": "g", "resourceClaimName": "g"}],
            "schedulerName": "s",
        },
        container={
            "volumeMounts": [{"name": "w", "mountPath": "/w"}],
            "resourceClaims": [{"name": "g"}],
            "securityContext": {"runAsUser": 7},
        },
    )

    assert with_pod_settings({}, spec, runs_engine=False) == {"schedulerName": "s"}
    assert with_container_settings({}, spec, runs_engine=False) == {"securityContext": {"runAsUser": 7}}


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        pytest.param(
            {"spec": {"volumes": [{"name": "own", "emptyDir": {}}]}},
            "Widgets has its own volume own: choose another name in podTemplate.spec.volumes",
            id="name",
        ),
        pytest.param(
            {"container": {"volumeMounts": [{"name": "w", "mountPath": "/own/"}]}},
            "Widgets mounts its own volume own at /own: choose another mountPath in "
            "podTemplate.container.volumeMounts",
            id="path",
        ),
    ],
)
def test_clash_with_own_volume_is_named(template: dict[str, Any], problem: str) -> None:
    assert volume_problems(stating(**template), "Widgets", {"own": "/own"}) == [problem]


def test_volume_below_path_of_own_volume_is_no_clash() -> None:
    spec = stating(container={"volumeMounts": [{"name": "w", "mountPath": "/own/w"}]})

    assert volume_problems(spec, "Widgets", {"own": "/own"}) == []


@pytest.mark.parametrize(
    ("path", "is_valid"),
    [
        ("a/b", True),
        (".a", True),
        ("a..b", True),
        ("..a", False),
        ("a/..", False),
        (".", False),
        ("/a", False),
    ],
)
def test_path_of_an_item_is_one_that_kubernetes_accepts(path: str, is_valid: bool) -> None:
    assert (re.fullmatch(formats.RELATIVE_PATH, path) is not None) == is_valid


def test_live_pod_is_read_back_without_unsupported_fields() -> None:
    pod = {
        "hostNetwork": True,
        "schedulerName": "default-scheduler",
        "serviceAccountName": "engine",
        "volumes": [
            {"name": "own", "emptyDir": {}},
            {"name": "node", "hostPath": {"path": "/"}},
            {"name": "c", "configMap": {"name": "c", "defaultMode": 420}},
        ],
    }
    container = {
        "securityContext": {"privileged": True, "allowPrivilegeEscalation": True, "runAsUser": 5},
        "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in ("own", "node", "c")],
    }

    fields = pod_fields(container, pod, {}, {"own"})

    assert fields["podTemplate"] == {
        "spec": {
            "serviceAccountName": "engine",
            "volumes": [{"name": "c", "configMap": {"name": "c", "defaultMode": 420}}],
        },
        "container": {
            "securityContext": {"runAsUser": 5},
            "volumeMounts": [{"name": "c", "mountPath": "/c"}],
        },
    }
