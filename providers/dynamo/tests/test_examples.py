"""Two typical deployments, rendered to what Dynamo accepts (sources §2.2)."""

from __future__ import annotations

from kubefoundry_dynamo.render import render
from kubefoundry_dynamo.settings import Settings
from kubefoundry_sdk._api.pod_status import LAST_WORDS, NO_SERVICE_LINKS
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

V0_7 = Schema("nvidia.com/v1alpha1", frozenset({"subComponentType", "globalDynamoNamespace"}))
V1_5 = Schema("nvidia.com/v1beta1", frozenset({"v1beta1", "runtimeVersionOverride"}))

LLAMA_8B = {
    "model": {"id": "meta-llama/Llama-3.1-8B-Instruct", "source": "huggingface"},
    "engine": {"type": "vllm", "contextLength": 8192},
    "serving": {"mode": "aggregated"},
    "scaling": {"replicas": 1},
    "resources": {"gpu": {"count": 1}, "memory": "32Gi"},
    "secrets": {"huggingFaceToken": "hf-token"},
}
LLAMA_70B = {
    "model": {"id": "meta-llama/Llama-3.1-70B-Instruct", "source": "huggingface"},
    "provider": {
        "name": "dynamo",
        "overrides": {
            "routerMode": "kv",
            "frontend": {"replicas": 2, "resources": {"cpu": "4", "memory": "8Gi"}},
        },
    },
    "engine": {"type": "vllm"},
    "serving": {"mode": "disaggregated"},
    "scaling": {
        "prefill": {"replicas": 2, "gpu": {"count": 4}, "memory": "128Gi"},
        "decode": {"replicas": 4, "gpu": {"count": 2}, "memory": "64Gi"},
    },
    "secrets": {"huggingFaceToken": "hf-token"},
}


def test_aggregated_on_0_7() -> None:
    rendered = render(deployment(LLAMA_8B, "llama-8b"), V0_7, Settings())

    image = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.7.1"
    assert rendered.main == {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "llama-8b"},
        "spec": {
            "backendFramework": "vllm",
            "services": {
                "Frontend": {
                    "componentType": "frontend",
                    "replicas": 1,
                    "extraPodMetadata": {"labels": {"kubefoundry.ai/modeldeployment": "llama-8b"}},
                    "envFromSecret": "hf-token",
                    "envs": [{"name": "DYN_ROUTER_MODE", "value": "round-robin"}],
                    "resources": {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi"}},
                    "extraPodSpec": {"mainContainer": {"image": image, **LAST_WORDS}, **NO_SERVICE_LINKS},
                },
                "VllmWorker": {
                    "componentType": "worker",
                    "replicas": 1,
                    "extraPodMetadata": {"labels": {"kubefoundry.ai/modeldeployment": "llama-8b"}},
                    "envFromSecret": "hf-token",
                    "resources": {"requests": {"memory": "32Gi"}, "limits": {"memory": "32Gi", "gpu": "1"}},
                    "extraPodSpec": {
                        **NO_SERVICE_LINKS,
                        "mainContainer": {
                            "image": image,
                            **LAST_WORDS,
                            "command": ["python3", "-m", "dynamo.vllm"],
                            "args": [
                                *("--model", "meta-llama/Llama-3.1-8B-Instruct"),
                                *("--served-model-name", "Llama-3.1-8B-Instruct"),
                                *("--max-model-len", "8192"),
                                *("--tensor-parallel-size", "1"),
                            ],
                        },
                    },
                },
            },
        },
    }
    assert rendered.helpers == ()
    assert rendered.notes == ()


def test_disaggregated_with_kv_routing_on_0_7() -> None:
    services = render(deployment(LLAMA_70B, "llama-70b-pd"), V0_7, Settings()).main["spec"]["services"]

    assert list(services) == ["Frontend", "VllmPrefillWorker", "VllmDecodeWorker"]
    assert services["Frontend"]["envs"] == [{"name": "DYN_ROUTER_MODE", "value": "kv"}]
    assert services["Frontend"]["replicas"] == 2
    assert services["Frontend"]["resources"] == {
        "requests": {"cpu": "4", "memory": "8Gi"},
        "limits": {"memory": "8Gi"},
    }
    prefill, decode = services["VllmPrefillWorker"], services["VllmDecodeWorker"]
    assert (prefill["subComponentType"], decode["subComponentType"]) == ("prefill", "decode")
    assert (prefill["replicas"], decode["replicas"]) == (2, 4)
    assert prefill["resources"]["limits"] == {"memory": "128Gi", "gpu": "4"}
    assert decode["resources"]["limits"] == {"memory": "64Gi", "gpu": "2"}
    model = ["--model", "meta-llama/Llama-3.1-70B-Instruct", "--served-model-name", "Llama-3.1-70B-Instruct"]
    assert prefill["extraPodSpec"]["mainContainer"]["args"] == [
        *model,
        *("--tensor-parallel-size", "4"),
        "--is-prefill-worker",
        "--kv-events-config",
        '{"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:20080","enable_kv_cache_events":true}',
    ]
    assert decode["extraPodSpec"]["mainContainer"]["args"] == [
        *model,
        *("--tensor-parallel-size", "2"),
        "--is-decode-worker",
    ]


def test_disaggregated_on_v1beta1() -> None:
    rendered = render(deployment(LLAMA_70B, "llama-70b-pd"), V1_5, Settings())

    frontend, prefill, decode = rendered.main["spec"]["components"]
    assert rendered.main["apiVersion"] == "nvidia.com/v1beta1"
    assert (frontend["name"], frontend["type"], frontend["replicas"]) == ("Frontend", "frontend", 2)
    assert (prefill["name"], prefill["type"], prefill["replicas"]) == ("VllmPrefillWorker", "prefill", 2)
    assert decode["podTemplate"] == {
        "metadata": {"labels": {"kubefoundry.ai/modeldeployment": "llama-70b-pd"}},
        "spec": {
            **NO_SERVICE_LINKS,
            "containers": [
                {
                    "name": "main",
                    "image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.5.0",
                    **LAST_WORDS,
                    "command": ["python3", "-m", "dynamo.vllm"],
                    "args": [
                        *("--model", "meta-llama/Llama-3.1-70B-Instruct"),
                        *("--served-model-name", "Llama-3.1-70B-Instruct"),
                        *("--tensor-parallel-size", "2"),
                        *("--disaggregation-mode", "decode"),
                        *("--kv-transfer-config", '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'),
                    ],
                    "envFrom": [{"secretRef": {"name": "hf-token"}}],
                    "resources": {
                        "requests": {"memory": "64Gi"},
                        "limits": {"memory": "64Gi", "nvidia.com/gpu": "2"},
                    },
                }
            ],
        },
    }
