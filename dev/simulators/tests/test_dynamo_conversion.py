"""Conversion between the two shapes of a graph loses no field."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubefoundry_simulators.dynamo_conversion import ORIGINAL, converted, to_v1alpha1, to_v1beta1

ALPHA: dict[str, Any] = {
    "backendFramework": "vllm",
    "envs": [{"name": "A", "value": "1"}],
    "services": {
        "Frontend": {
            "componentType": "frontend",
            "replicas": 2,
            "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
            "extraPodSpec": {"mainContainer": {"image": "x:1.0.1"}},
        },
        "Prefill": {
            "componentType": "worker",
            "subComponentType": "prefill",
            "replicas": 1,
            "envFromSecret": "hf",
            "envs": [{"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"limits": {"gpu": "4", "memory": "64Gi", "custom": {"example.com/nic": "1"}}},
            "sharedMemory": {"size": "16Gi"},
            "extraPodMetadata": {"labels": {"l": "v"}},
            "extraPodSpec": {
                "nodeSelector": {"n": "v"},
                "tolerations": [{"operator": "Exists"}],
                "mainContainer": {"image": "x:1.0.1", "command": ["python3"], "args": ["-m", "dynamo.vllm"]},
            },
        },
    },
}
BETA: dict[str, Any] = {
    "backendFramework": "vllm",
    "env": [{"name": "A", "value": "1"}],
    "components": [
        {
            "name": "Frontend",
            "type": "frontend",
            "replicas": 2,
            "podTemplate": {
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "image": "x:1.0.1",
                            "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
                        }
                    ]
                }
            },
        },
        {
            "name": "Prefill",
            "type": "prefill",
            "replicas": 1,
            "sharedMemorySize": "16Gi",
            "podTemplate": {
                "metadata": {"labels": {"l": "v"}},
                "spec": {
                    "nodeSelector": {"n": "v"},
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [
                        {
                            "name": "main",
                            "image": "x:1.0.1",
                            "command": ["python3"],
                            "args": ["-m", "dynamo.vllm"],
                            "env": [{"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                            "envFrom": [{"secretRef": {"name": "hf"}}],
                            "resources": {
                                "limits": {"memory": "64Gi", "nvidia.com/gpu": "4", "example.com/nic": "1"}
                            },
                        }
                    ],
                },
            },
        },
    ],
}


def test_graph_versions_convert_to_each_other() -> None:
    assert to_v1beta1(ALPHA) == BETA
    assert to_v1alpha1(BETA) == ALPHA


def graph(version: str, spec: Any, **rest: Any) -> dict[str, Any]:
    meta = {"name": "m", "annotations": {"mine": "1"}}
    return {"apiVersion": f"nvidia.com/{version}", "kind": "K", "metadata": meta, "spec": spec, **rest}


@pytest.mark.parametrize(("version", "other"), [("v1alpha1", "v1beta1"), ("v1beta1", "v1alpha1")])
def test_field_of_one_graph_version_survives_a_round_trip(version: str, other: str) -> None:
    spec = copy.deepcopy(ALPHA if version == "v1alpha1" else BETA)
    spec["topologyConstraint"] = {"packDomain": "rack"}
    component = spec["services"]["Frontend"] if version == "v1alpha1" else spec["components"][0]
    component["experimental"] = {"only": "here"}
    original = graph(version, spec)

    stored = converted(original, f"nvidia.com/{other}")

    assert ORIGINAL in stored["metadata"]["annotations"]
    assert converted(stored, original["apiVersion"]) == original


def test_edit_in_other_version_wins_over_stored_original() -> None:
    stored = converted(graph("v1alpha1", ALPHA), "nvidia.com/v1beta1")
    stored["spec"]["components"][0]["replicas"] = 5

    back = converted(stored, "nvidia.com/v1alpha1")

    assert back["spec"]["services"]["Frontend"]["replicas"] == 5


@pytest.mark.parametrize("part", [{}, {"spec": ALPHA}, {"status": {"state": "successful"}}])
def test_part_of_a_graph_gets_metadata(part: dict[str, Any]) -> None:
    head = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment"}

    assert "metadata" in converted({**head, **part}, "nvidia.com/v1beta1")


def test_graph_status_is_converted() -> None:
    counts = {"componentKind": "Deployment", "componentNames": ["m-frontend"], "replicas": 1}
    status = {"state": "successful", "components": {"Frontend": counts}}

    alpha = converted(graph("v1beta1", BETA, status=status), "nvidia.com/v1alpha1")

    assert alpha["status"]["services"] == {"Frontend": {**counts, "componentName": "m-frontend"}}
    assert converted(alpha, "nvidia.com/v1beta1")["status"] == status


def test_conversion_to_unknown_version_fails() -> None:
    with pytest.raises(ValueError, match="v9"):
        converted(graph("v1alpha1", ALPHA), "nvidia.com/v9")
