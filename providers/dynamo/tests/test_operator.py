"""The operator's release as its Deployment tells it, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_dynamo.operator import read
from kubefoundry_dynamo.provider import provider
from kubefoundry_dynamo.settings import Settings
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

IMAGE = "nvcr.io/nvidia/ai-dynamo/kubernetes-operator"


def started(**manager: Any) -> Object:
    containers = [
        {"name": "kube-rbac-proxy", "image": "example.com/proxy:0.15.0"},
        {"name": "manager", **manager},
    ]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


@pytest.mark.parametrize(
    ("manager", "reported"),
    [
        pytest.param({"image": f"{IMAGE}:1.2.1"}, {"operatorVersion": "1.2.1"}, id="tag"),
        pytest.param({"image": f"{IMAGE}:v1.2.1@sha256:ab"}, {"operatorVersion": "1.2.1"}, id="v and digest"),
        pytest.param(
            {"image": f"{IMAGE}:1.4.0", "args": ["--operator-version=1.4.2"]},
            {"operatorVersion": "1.4.2"},
            id="the flag before the tag",
        ),
        pytest.param({"image": "example.com:5000/operator:latest"}, {}, id="a tag that is no version"),
        pytest.param({"image": "example.com:5000/operator"}, {}, id="a port is no tag"),
        pytest.param({"image": f"{IMAGE}:1.5.0-rc1"}, {}, id="not released"),
        pytest.param({}, {}, id="nothing"),
    ],
)
def test_running_release_is_read_from_the_operator(manager: dict[str, Any], reported: dict[str, str]) -> None:
    assert read(started(**manager)) == reported


def test_operator_version_sets_image_and_untagged_runtime() -> None:
    subject = provider(Settings())
    spec = {"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 1}}}
    crd_only = Schema("nvidia.com/v1alpha1", frozenset({"v1beta1"}))
    reported = Schema("nvidia.com/v1alpha1", frozenset({"v1beta1"}), discovered={"operatorVersion": "1.2.1"})

    assert subject.render(deployment(spec), crd_only).image == "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.2.0"
    assert subject.render(deployment(spec), reported).image == "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.2.1"
    own = subject.render(deployment({**spec, "image": "example.com/engine:mine"}), reported)
    assert any("treated as Dynamo 1.2.1" in note for note in own.notes)
