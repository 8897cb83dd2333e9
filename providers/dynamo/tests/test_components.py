"""What is in a component, and where CRD versions differ (sources §2.1, §2.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_dynamo.render import render
from kubefoundry_dynamo.settings import Settings
from kubefoundry_dynamo.versions import Version
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.pod import QUEUE_LABEL
from kubefoundry_sdk.testing.generated import deployment

V0_4 = Schema("nvidia.com/v1alpha1")
V0_7 = Schema("nvidia.com/v1alpha1", frozenset({"subComponentType", "globalDynamoNamespace"}))
V0_8 = Schema("nvidia.com/v1alpha1", V0_7.features | {"gpuType"})
V1_4 = Schema("nvidia.com/v1alpha1", V0_8.features | {"v1beta1", "runtimeVersionOverride"})
V1_5 = Schema("nvidia.com/v1beta1", frozenset({"v1beta1", "runtimeVersionOverride"}))


def rendered(schema: Schema, settings: Settings | None = None, **fields: Any) -> Rendered:
    spec = {
        "model": {"id": "org/m"},
        "engine": {"type": "vllm"},
        "resources": {"gpu": {"count": 2}},
        **fields,
    }
    return render(deployment(spec, "m", "models"), schema, settings or Settings())


def components(render: Rendered) -> list[dict[str, Any]]:
    spec = render.main["spec"]
    return list(spec["services"].values()) if "services" in spec else spec["components"]


@pytest.mark.parametrize(
    ("schema", "namespaces"), [(V0_4, {"models-m"}), (V0_7, {None}), (V1_4, {None}), (V1_5, {None})]
)
def test_dynamo_namespace_below_0_7_only(schema: Schema, namespaces: set[str | None]) -> None:
    assert {part.get("dynamoNamespace") for part in components(rendered(schema))} == namespaces


@pytest.mark.parametrize(
    ("schema", "limits"),
    [
        (V0_4, {"custom": {"amd.com/gpu": "2"}}),
        (V0_7, {"custom": {"amd.com/gpu": "2"}}),
        (V0_8, {"gpu": "2", "gpuType": "amd.com/gpu"}),
    ],
)
def test_gpus_of_other_makers(schema: Schema, limits: dict[str, Any]) -> None:
    worker = components(rendered(schema, resources={"gpu": {"count": 2, "type": "amd.com/gpu"}}))[1]

    assert worker["resources"]["limits"] == limits


@pytest.mark.parametrize(
    ("schema", "image", "override"),
    [
        (V1_4, "r/i:latest", "1.4.0"),
        (V1_5, "r/i:latest", "1.5.0"),
        (V1_5, "r/i:v1.4.1", "1.4.1"),
        (V1_5, "r/i:1.4.1", None),
        (V0_8, "r/i:latest", None),
    ],
)
def test_runtime_version_where_the_tag_is_no_semantic_version(
    schema: Schema, image: str, override: str | None
) -> None:
    render = rendered(schema, image=image)

    assert [part.get("runtimeVersionOverride") for part in components(render)] == [override, override]
    assert bool(render.notes) == (image != "r/i:1.4.1")


@pytest.mark.parametrize(
    ("assumed", "flag"), [(None, "--is-prefill-worker"), (Version(1, 4), "--disaggregation-mode")]
)
def test_set_runtime_version_decides_for_tags_without_one(assumed: Version | None, flag: str) -> None:
    render = rendered(
        V0_7,
        Settings(runtime_version=assumed),
        image="r/i:latest",
        serving={"mode": "disaggregated"},
        scaling={"prefill": {"gpu": {"count": 1}}, "decode": {"gpu": {"count": 1}}},
        resources={},
    )

    assert flag in components(render)[1]["extraPodSpec"]["mainContainer"]["args"]


def test_image_tag_decides_the_flags_not_the_crd() -> None:
    render = rendered(
        V0_7,
        image="r/i:1.0.1",
        serving={"mode": "disaggregated"},
        scaling={"prefill": {"gpu": {"count": 1}}, "decode": {"gpu": {"count": 1}}},
        resources={},
    )

    assert "--disaggregation-mode" in components(render)[2]["extraPodSpec"]["mainContainer"]["args"]


@pytest.mark.parametrize(
    ("schema", "engine", "image"),
    [
        (V0_7, "vllm", "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.7.1"),
        (V1_4, "sglang", "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.4.0"),
        (V0_4, "trtllm", "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.4.1"),
    ],
)
def test_default_images_are_of_the_operators_line(schema: Schema, engine: str, image: str) -> None:
    parts = components(rendered(schema, engine={"type": engine}))

    assert {part["extraPodSpec"]["mainContainer"]["image"] for part in parts} == {image}


def test_administrators_default_image_yields_to_a_stated_one() -> None:
    settings = Settings(default_images={"vllm": "mirror/vllm:1.4.0"})

    stated = rendered(V1_4, settings, image="r/i:1.0.1")
    default = rendered(V1_4, settings)

    assert components(default)[0]["extraPodSpec"]["mainContainer"]["image"] == "mirror/vllm:1.4.0"
    assert components(stated)[0]["extraPodSpec"]["mainContainer"]["image"] == "r/i:1.0.1"


def test_default_image_comes_from_the_mirror() -> None:
    settings = Settings(mirror="r.example:5000/kf")

    parts = components(rendered(V1_4, settings, engine={"type": "sglang"}))

    assert {part["extraPodSpec"]["mainContainer"]["image"] for part in parts} == {
        "r.example:5000/kf/nvidia/ai-dynamo/sglang-runtime:1.4.0"
    }


def test_custom_image_starts_by_itself() -> None:
    render = rendered(V1_5, model={"source": "custom"}, image="r/i:1.4.1")

    worker = components(render)[1]["podTemplate"]["spec"]["containers"][0]
    assert "command" not in worker
    assert worker["args"] == ["--tensor-parallel-size", "2"]


SHARED: dict[str, Any] = {
    "env": [{"name": "A", "value": "b"}],
    "podTemplate": {"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}}},
    "secrets": {"huggingFaceToken": "hf"},
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"operator": "Exists"}],
}


METADATA = {"labels": {"l": "1", "kubefoundry.ai/modeldeployment": "m"}, "annotations": {"a": "1"}}


def test_all_pods_share_these_in_v1alpha1() -> None:
    for service in components(rendered(V1_4, **SHARED)):
        assert SHARED["env"][0] in service["envs"]
        assert service["extraPodMetadata"] == METADATA
        assert service["envFromSecret"] == "hf"
        assert service["extraPodSpec"]["nodeSelector"] == {"pool": "gpu"}
        assert service["extraPodSpec"]["tolerations"] == [{"operator": "Exists"}]


def test_all_pods_share_these_in_v1beta1() -> None:
    for component in components(rendered(V1_5, **SHARED)):
        template = component["podTemplate"]
        (container,) = template["spec"]["containers"]
        assert SHARED["env"][0] in container["env"]
        assert template["metadata"] == METADATA
        assert container["envFrom"] == [{"secretRef": {"name": "hf"}}]
        assert template["spec"]["nodeSelector"] == {"pool": "gpu"}
        assert template["spec"]["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize("schema", [V0_4, V1_5])
def test_queue_label_passes_to_all_pods(schema: Schema) -> None:
    queued = {QUEUE_LABEL: "models"}
    spec = {"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 2}}}
    model = replace(deployment(spec, "m", "models"), propagated_labels=queued)

    parts = components(render(model, schema, Settings()))

    pods = [part.get("extraPodMetadata") or part["podTemplate"]["metadata"] for part in parts]
    assert all(pod["labels"].items() >= queued.items() for pod in pods)
