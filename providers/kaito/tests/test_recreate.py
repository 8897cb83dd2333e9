"""What a Workspace cannot become in place."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_kaito.probe import ACCESS_SECRET, ANY_MODEL, ENGINE_CONFIG
from kubefoundry_kaito.provider import recreate, with_defaults
from kubefoundry_kaito.render import render
from kubefoundry_kaito.settings import Settings
from kubefoundry_sdk._api.names import EDITS_RECREATE_ANNOTATION
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.registration import registration
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

NEWEST = Schema("kaito.sh/v1beta1", frozenset({ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL}))
PRESET: dict[str, Any] = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm", "trustRemoteCode": True},
    "resources": {"gpu": {"count": 1}},
}
TEMPLATE: dict[str, Any] = {**PRESET, "image": "example.com/vllm:1.0.0"}

INFERENCE = "KAITO does not roll out a change of inference"
CONFIG = "KAITO does not roll out a change of the inference config"


def test_registration_says_that_edits_recreate() -> None:
    annotations = registration(with_defaults())["metadata"]["annotations"]

    assert annotations[EDITS_RECREATE_ANNOTATION] == "true"


def rendered(spec: dict[str, Any]) -> Rendered:
    return render(deployment(spec, "m"), NEWEST, Settings())


@pytest.mark.parametrize(
    ("before", "change", "expected"),
    [
        pytest.param(PRESET, {}, None, id="nothing"),
        pytest.param(TEMPLATE, {"image": "example.com/vllm:2.0.0"}, INFERENCE, id="image"),
        pytest.param(TEMPLATE, {"env": [{"name": "A", "value": "1"}]}, INFERENCE, id="env"),
        pytest.param(
            TEMPLATE,
            {"nodeSelector": {"pool": "a"}},
            "KAITO does not roll out a change of resource, inference",
            id="nodeSelector",
        ),
        pytest.param(PRESET, {"secrets": {"huggingFaceToken": "s"}}, INFERENCE, id="secret of a preset"),
        pytest.param(
            PRESET,
            {"engine": {"type": "vllm", "trustRemoteCode": True, "contextLength": 8192}},
            CONFIG,
            id="what only the ConfigMap holds",
        ),
        pytest.param(
            PRESET,
            {"image": "x:1"},
            "KAITO does not roll out a change of resource, inference, the inference config",
            id="preset to image",
        ),
    ],
)
def test_everything_but_labels_and_annotations(
    before: dict[str, Any], change: dict[str, Any], expected: str | None
) -> None:
    assert recreate(rendered(before), rendered({**before, **change})) == expected


def test_labels_annotations_and_version_do_not_matter() -> None:
    new = rendered(PRESET)
    old = rendered(PRESET)
    old.main["apiVersion"] = "kaito.sh/v1alpha1"
    del old.main["metadata"]

    assert recreate(old, new) is None
