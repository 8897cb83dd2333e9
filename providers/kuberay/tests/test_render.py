"""The RayService as a whole, and its RayCluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubefoundry_kuberay.provider import provider
from kubefoundry_kuberay.settings import Settings
from kubefoundry_sdk._api.pod_status import LAST_WORDS, NO_SERVICE_LINKS
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

SCHEMA = Schema("ray.io/v1", frozenset({"suspend"}))
IMAGE = "rayproject/ray-llm:2.56.0-py312-cu130"

Spec = dict[str, Any]

FULL: Spec = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm"},
    "scaling": {"replicas": 2},
    "resources": {"gpu": {"count": 2}, "memory": "32Gi", "cpu": "500m"},
    "env": [{"name": "LEVEL", "value": "DEBUG"}],
    "podTemplate": {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}},
    "secrets": {"huggingFaceToken": "hf-token"},
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
}


def rendered(spec: Spec, settings: Settings | None = None) -> Spec:
    return provider(settings or Settings()).render(deployment(spec), SCHEMA).main


def cluster(spec: Spec, settings: Settings | None = None) -> Spec:
    return dict(rendered(spec, settings)["spec"]["rayClusterConfig"])


def with_fields(**fields: Any) -> Spec:
    return FULL | fields


def test_whole_object_is_rendered() -> None:
    main = rendered(FULL)

    assert {key: main[key] for key in ("apiVersion", "kind", "metadata")} == {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": "m"},
    }
    pod = {
        **NO_SERVICE_LINKS,
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    container = {
        "image": IMAGE,
        **LAST_WORDS,
        "env": [{"name": "LEVEL", "value": "DEBUG"}],
        "envFrom": [{"secretRef": {"name": "hf-token"}}],
    }
    config = main["spec"]["rayClusterConfig"]
    metadata = config["headGroupSpec"]["template"]["metadata"]
    digest = metadata["annotations"].pop("kubefoundry.ai/tolerations")
    assert len(digest) == 16
    labels = {"team": "a", "kubefoundry.ai/modeldeployment": "m"}
    assert metadata == {"labels": labels, "annotations": {"note": "b"}}
    assert config == {
        "rayVersion": "2.56.0",
        "enableInTreeAutoscaling": True,
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0"},
            "template": {
                "metadata": metadata,
                "spec": {
                    **pod,
                    "containers": [
                        {
                            **container,
                            "name": "ray-head",
                            "ports": [
                                {"name": "gcs-server", "containerPort": 6379},
                                {"name": "dashboard", "containerPort": 8265},
                                {"name": "client", "containerPort": 10001},
                                {"name": "serve", "containerPort": 8000},
                            ],
                            "resources": {
                                "requests": {"cpu": "2", "memory": "4Gi"},
                                "limits": {"memory": "4Gi"},
                            },
                        }
                    ],
                },
            },
        },
        "workerGroupSpecs": [
            {
                "groupName": "gpu",
                "replicas": 2,
                "minReplicas": 0,
                "maxReplicas": 1000,
                "rayStartParams": {"num-cpus": "4", "num-gpus": "2"},
                "template": {
                    "metadata": {
                        "labels": labels,
                        "annotations": {"note": "b", "kubefoundry.ai/tolerations": digest},
                    },
                    "spec": {
                        **pod,
                        "containers": [
                            {
                                **container,
                                "name": "ray-worker",
                                "resources": {
                                    "requests": {"cpu": "500m", "memory": "32Gi"},
                                    "limits": {"nvidia.com/gpu": "2", "memory": "32Gi"},
                                },
                            }
                        ],
                    },
                },
            }
        ],
    }


def test_nothing_is_rendered_for_what_is_not_stated() -> None:
    config = cluster({"model": {"id": "a/b"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 1}}})

    worker = config["workerGroupSpecs"][0]["template"]
    assert worker == {
        "metadata": {"labels": {"kubefoundry.ai/modeldeployment": "m"}},
        "spec": {
            **NO_SERVICE_LINKS,
            "containers": [
                {
                    "name": "ray-worker",
                    "image": IMAGE,
                    **LAST_WORDS,
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                }
            ],
        },
    }


def test_scaling_makes_no_new_cluster() -> None:
    """KubeRay's hash leaves `replicas` out, in every version."""
    single, four = (
        cluster(with_fields(scaling={"replicas": 1})),
        cluster(with_fields(scaling={"replicas": 4})),
    )

    counts = [config["workerGroupSpecs"][0].pop("replicas") for config in (single, four)]
    assert counts == [1, 4]
    assert single == four


def test_tolerations_edit_makes_a_new_cluster_unless_reordered() -> None:
    first, second = {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}

    def digests(*tolerations: Spec) -> set[str]:
        config = cluster(with_fields(tolerations=list(tolerations)))
        groups = [config["headGroupSpec"], *config["workerGroupSpecs"]]
        return {
            group["template"]["metadata"]["annotations"]["kubefoundry.ai/tolerations"] for group in groups
        }

    assert len(digests(first, second)) == 1
    assert digests(first, second) == digests(second, first)
    assert digests(first, second) != digests(first)


def test_roles_have_worker_groups_with_a_resource_of_their_own() -> None:
    config = cluster(
        {
            "model": {"id": "a/b"},
            "engine": {"type": "vllm"},
            "serving": {"mode": "disaggregated"},
            "scaling": {
                "prefill": {"replicas": 1, "gpu": {"count": 4}, "memory": "64Gi"},
                "decode": {"replicas": 3, "gpu": {"count": 1, "type": "amd.com/gpu"}, "memory": "32Gi"},
            },
        }
    )

    prefill, decode = config["workerGroupSpecs"]
    assert [(group["groupName"], group["replicas"]) for group in (prefill, decode)] == [
        ("prefill", 1),
        ("decode", 3),
    ]
    assert prefill["rayStartParams"] == {
        "num-cpus": "6",
        "num-gpus": "4",
        "resources": '"{\\"prefill\\": 4}"',
    }
    assert decode["template"]["spec"]["containers"][0]["resources"] == {
        "requests": {"memory": "32Gi"},
        "limits": {"amd.com/gpu": "1", "memory": "32Gi"},
    }


def test_role_resource_reads_as_the_autoscaler_reads_it() -> None:
    """ray/autoscaler/_private/kuberay/autoscaling_config.py: quotes off, backslashes off, JSON of whole numbers."""
    config = cluster(
        {
            "model": {"id": "a/b"},
            "engine": {"type": "vllm"},
            "serving": {"mode": "disaggregated"},
            "scaling": {role: {"gpu": {"count": 2}, "memory": "1Gi"} for role in ("prefill", "decode")},
        }
    )

    texts = [group["rayStartParams"]["resources"] for group in config["workerGroupSpecs"]]
    assert [json.loads(text[1:-1].replace("\\", "")) for text in texts] == [{"prefill": 2}, {"decode": 2}]


@pytest.mark.parametrize(("cpu", "ray_cpus"), [(None, "4"), ("500m", "4"), (6, "6"), ("6500m", "7")])
def test_worker_has_ray_cpus_for_its_engines_and_for_serve(cpu: Any, ray_cpus: str) -> None:
    config = cluster(with_fields(resources={"gpu": {"count": 2}, **({"cpu": cpu} if cpu else {})}))

    assert config["workerGroupSpecs"][0]["rayStartParams"]["num-cpus"] == ray_cpus


def test_zero_replicas_suspend_with_counts_that_ray_accepts() -> None:
    main = rendered(with_fields(scaling={"replicas": 0}))

    assert main["spec"]["suspend"] is True
    assert main["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["replicas"] == 1
    assert "num_replicas: 0" not in main["spec"]["serveConfigV2"]
    assert "suspend" not in rendered(FULL)["spec"]


def test_overrides_of_the_head_are_merged_with_the_defaults() -> None:
    head = {"resources": {"memory": "8Gi"}, "rayStartParams": {"dashboard-host": "0.0.0.0"}}

    group = cluster(with_fields(provider={"name": "kuberay", "overrides": {"head": head}}))["headGroupSpec"]

    assert group["rayStartParams"] == {"num-cpus": "0", "dashboard-host": "0.0.0.0"}
    assert group["template"]["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "2", "memory": "8Gi"},
        "limits": {"memory": "8Gi"},
    }


def test_secrets_for_the_heads_image_are_its_own() -> None:
    stated = {"name": "kuberay", "overrides": {"head": {"imagePullSecrets": ["registry"]}}}

    config = cluster(with_fields(provider=stated))

    assert config["headGroupSpec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert "imagePullSecrets" not in config["workerGroupSpecs"][0]["template"]["spec"]


def test_image_that_does_not_say_its_ray_version_is_noted() -> None:
    kuberay = provider(Settings(default_image="team/engine:1.0.0"))

    rendered = kuberay.render(deployment(FULL), SCHEMA)

    assert "rayVersion" not in rendered.main["spec"]["rayClusterConfig"]
    assert rendered.notes == (
        "the tag of image team/engine:1.0.0 does not say its Ray version: it must contain Ray 2.52 or newer "
        "with ray.serve.llm and vLLM",
    )
