"""What a DynamoGraphDeployment cannot become in place."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_dynamo.recreate import recreate
from kubefoundry_dynamo.render import render
from kubefoundry_dynamo.settings import Settings
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

V1ALPHA1 = Schema("nvidia.com/v1alpha1", frozenset({"subComponentType", "globalDynamoNamespace", "gpuType"}))
V1BETA1 = Schema("nvidia.com/v1beta1", frozenset({"v1beta1", "runtimeVersionOverride"}))
SPEC: dict[str, Any] = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}
DISAGGREGATED: dict[str, Any] = {
    **SPEC,
    "serving": {"mode": "disaggregated"},
    "resources": {},
    "scaling": {"prefill": {"gpu": {"count": 1}}, "decode": {"gpu": {"count": 1}}},
}


def rendered(spec: dict[str, Any], schema: Schema) -> Rendered:
    return render(deployment(spec, "m"), schema, Settings())


@pytest.mark.parametrize("schema", [V1ALPHA1, V1BETA1], ids=lambda schema: schema.api_version)
@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param({**SPEC, "image": "x:1.0.0", "scaling": {"replicas": 3}}, None, id="image and scale"),
        pytest.param(
            DISAGGREGATED,
            "Dynamo cannot add or remove components: VllmDecodeWorker, VllmPrefillWorker, VllmWorker",
            id="mode",
        ),
        pytest.param(
            {**SPEC, "engine": {"type": "sglang"}},
            "Dynamo cannot add or remove components: SglangWorker, VllmWorker",
            id="engine",
        ),
    ],
)
def test_changed_set_of_components_is_recreated(
    schema: Schema, new: dict[str, Any], expected: str | None
) -> None:
    assert recreate(rendered(SPEC, schema), rendered(new, schema)) == expected


def test_changed_backend_is_recreated() -> None:
    old, new = rendered(SPEC, V1BETA1), rendered(SPEC, V1BETA1)
    old.main["spec"]["backendFramework"] = "sglang"

    assert recreate(old, new) == "Dynamo does not change backendFramework"


def test_same_components_in_the_next_version_stay() -> None:
    assert recreate(rendered(SPEC, V1ALPHA1), rendered(SPEC, V1BETA1)) is None
