"""What a ModelDeployment becomes: whole Workspaces, and the rules behind their parts."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kubefoundry_kaito.probe import ACCESS_SECRET, ANY_MODEL, ENGINE_CONFIG
from kubefoundry_kaito.render import render
from kubefoundry_kaito.settings import Settings
from kubefoundry_sdk._api.pod_status import LAST_WORDS, NO_SERVICE_LINKS
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

Spec = dict[str, Any]

NEWEST = Schema("kaito.sh/v1beta1", frozenset({ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL}))
BEFORE_0_9 = Schema("kaito.sh/v1beta1", frozenset({ENGINE_CONFIG, ACCESS_SECRET}))

SOURCE = {"kubefoundry.ai/model-source": "huggingface"}
LLAMA_SERVER = {"name": "kaito", "overrides": {"llamacppServer": "llama-server"}}


def rendered(spec: Spec, schema: Schema = NEWEST, **settings: Any) -> Rendered:
    return render(deployment(spec, "gemma"), schema, Settings(**settings))


def container(spec: Spec) -> dict[str, Any]:
    first: dict[str, Any] = rendered(spec).main["inference"]["template"]["spec"]["containers"][0]
    return first


def test_cpu_model_becomes_a_pod_template() -> None:
    """A CPU model on llama.cpp, with memory as request and limit (contract §2) and a probe."""
    result = rendered(
        {
            "model": {"id": "google/gemma-3-1b-it-qat-q8_0-gguf", "source": "huggingface"},
            "engine": {"type": "llamacpp"},
            "resources": {"gpu": {"count": 0}, "memory": "16Gi", "cpu": "8"},
            "image": "example/llama-cpp-runner:latest",
        }
    )

    assert result.main == {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": "gemma", "labels": SOURCE},
        "resource": {"count": 1, "labelSelector": {"matchLabels": {"kubernetes.io/os": "linux"}}},
        "inference": {
            "template": {
                "metadata": {"labels": {"kubefoundry.ai/modeldeployment": "gemma"}},
                "spec": {
                    **NO_SERVICE_LINKS,
                    "containers": [
                        {
                            "name": "model",
                            "image": "example/llama-cpp-runner:latest",
                            **LAST_WORDS,
                            "args": ["huggingface://google/gemma-3-1b-it-qat-q8_0-gguf", "--address=:5000"],
                            "ports": [{"containerPort": 5000}],
                            "readinessProbe": {"tcpSocket": {"port": 5000}},
                            "resources": {
                                "requests": {"memory": "16Gi", "cpu": "8"},
                                "limits": {"memory": "16Gi"},
                            },
                        }
                    ],
                },
            }
        },
    }
    assert result.helpers == ()


def test_vllm_model_without_image_becomes_a_preset() -> None:
    result = rendered(
        {
            "model": {"id": "microsoft/phi-4"},
            "engine": {"type": "vllm", "contextLength": 8192, "args": {"gpu-memory-utilization": "0.9"}},
            "resources": {"gpu": {"count": 1}},
            "secrets": {"huggingFaceToken": "hf"},
        }
    )

    assert result.main == {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": "gemma", "labels": SOURCE, "annotations": {"kaito.sh/runtime": "vllm"}},
        "resource": {
            "count": 1,
            "labelSelector": {"matchLabels": {"kubernetes.io/os": "linux", "nvidia.com/gpu.present": "true"}},
        },
        "inference": {
            "preset": {"name": "phi-4", "presetOptions": {"modelAccessSecret": "hf"}},
            "config": "gemma-inference-config",
        },
    }
    (config,) = result.helpers
    assert (config["kind"], config["metadata"]["name"]) == ("ConfigMap", "gemma-inference-config")
    assert yaml.safe_load(config["data"]["inference_config.yaml"]) == {
        "vllm": {"served-model-name": "phi-4", "max-model-len": "8192", "gpu-memory-utilization": "0.9"}
    }


def test_vllm_model_with_image_gets_the_engine_options_as_args() -> None:
    result = container(
        {
            "model": {"id": "meta-llama/Llama-3.1-8B-Instruct"},
            "engine": {
                "type": "vllm",
                "contextLength": 4096,
                "trustRemoteCode": True,
                "args": {"enforce-eager": "true", "enable-prefix-caching": "false", "quantization": "awq"},
            },
            "resources": {"gpu": {"count": 2}},
            "image": "example/vllm:1",
        }
    )

    assert result["args"] == [
        *("--model", "meta-llama/Llama-3.1-8B-Instruct"),
        *("--served-model-name", "Llama-3.1-8B-Instruct"),
        *("--port", "5000"),
        *("--max-model-len", "4096"),
        "--trust-remote-code",
        *("--tensor-parallel-size", "2"),
        "--no-enable-prefix-caching",
        "--enforce-eager",
        *("--quantization", "awq"),
    ]
    assert result["volumeMounts"] == [{"name": "shared-memory", "mountPath": "/dev/shm"}]


def test_image_of_llama_cpps_own_server_gets_its_options() -> None:
    result = container(
        {
            "model": {"id": "org/model-gguf"},
            "engine": {
                "type": "llamacpp",
                "contextLength": 2048,
                "args": {"hf-file": "q4.gguf", "fa": "true"},
            },
            "image": "example/llama-server:1",
            "provider": LLAMA_SERVER,
        }
    )

    assert result["args"] == [
        *("--hf-repo", "org/model-gguf"),
        *("--alias", "model-gguf"),
        *("--host", "0.0.0.0"),
        *("--port", "5000"),
        *("--ctx-size", "2048"),
        *("--flash-attn", "on"),
        *("--hf-file", "q4.gguf"),
    ]
    assert result["readinessProbe"] == {"httpGet": {"path": "/health", "port": 5000}}


@pytest.mark.parametrize(
    ("engine", "provider", "args"),
    [
        ("vllm", None, ["--port", "5000", "--model", "/models/x"]),
        ("llamacpp", None, ["run", "--model", "/models/x", "--address=:5000"]),
        ("llamacpp", LLAMA_SERVER, ["--host", "0.0.0.0", "--port", "5000", "--model", "/models/x"]),
    ],
)
def test_model_inside_the_image_gets_no_model_argument(engine: str, provider: Any, args: list[str]) -> None:
    spec = {
        "model": {"source": "custom", "servedName": "ignored"},
        "engine": {"type": engine, "args": {"model": "/models/x"}},
        "resources": {"gpu": {"count": 1}},
        "image": "example/own:1",
        "provider": provider,
    }

    assert container(spec)["args"] == args


def test_llama_server_takes_a_host_for_ipv6() -> None:
    spec = {
        "model": {"id": "org/m"},
        "engine": {"type": "llamacpp", "args": {"host": "::"}},
        "resources": {"gpu": {"count": 1}},
        "image": "example/own:1",
        "provider": LLAMA_SERVER,
    }

    line = container(spec)["args"]

    assert [line[number + 1] for number, entry in enumerate(line) if entry == "--host"] == ["::"]


def test_name_that_reads_like_a_switch_stays_a_name() -> None:
    model = {"id": "org/m", "servedName": "true"}
    on_vllm = {"model": model, "engine": {"type": "vllm"}, "image": "example/vllm:1"}
    on_llama_server = {
        "model": model,
        "engine": {"type": "llamacpp"},
        "image": "example/llama-server:1",
        "provider": LLAMA_SERVER,
    }

    assert container(on_vllm)["args"][2:4] == ["--served-model-name", "true"]
    assert container(on_llama_server)["args"][2:4] == ["--alias", "true"]


def test_address_of_an_aikit_image_stands_after_a_switch() -> None:
    """Older AIKit runners read each option and the entry after it; a switch at the end breaks them."""
    spec = {
        "model": {"id": "org/m"},
        "engine": {"type": "llamacpp", "args": {"f16": "true"}},
        "image": "example/aikit:1",
    }

    assert container(spec)["args"] == ["huggingface://org/m", "--f16", "--address=:5000"]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("tensor-parallel-size", ["--tensor-parallel-size", "2"]),
        ("tp", ["--tensor-parallel-size", "2"]),
        ("pipeline_parallel_size", ["--tensor-parallel-size", "2", "--pipeline-parallel-size", "2"]),
    ],
)
def test_parallel_size_in_args_replaces_the_derived_one(size: str, expected: list[str]) -> None:
    spec = {
        "model": {"id": "org/m"},
        "engine": {"type": "vllm", "args": {size: "2"}},
        "resources": {"gpu": {"count": 4}},
        "image": "example/vllm:1",
    }

    args = container(spec)["args"]

    assert args[-len(expected) :] == expected
    assert "4" not in args


@pytest.mark.parametrize(
    ("model_id", "schema", "name"),
    [
        ("microsoft/Phi-4-mini-instruct", NEWEST, "phi-4-mini-instruct"),
        ("microsoft/phi-4-MINI-instruct", BEFORE_0_9, "phi-4-mini-instruct"),
        ("mistralai/Mistral-7B-Instruct-v0.3", BEFORE_0_9, "mistral-7b-instruct"),
        ("mistralai/Mistral-7B-Instruct-v0.3", NEWEST, "mistralai/Mistral-7B-Instruct-v0.3"),
        ("Qwen/Qwen3-0.6B", NEWEST, "Qwen/Qwen3-0.6B"),
        ("Falcon-7b", BEFORE_0_9, "falcon-7b"),
    ],
)
def test_model_gets_its_preset(model_id: str, schema: Schema, name: str) -> None:
    spec = {"model": {"id": model_id}, "engine": {"type": "vllm", "trustRemoteCode": True}}

    assert rendered(spec, schema).main["inference"]["preset"]["name"] == name


def test_nodes_that_kaito_makes() -> None:
    spec = {"model": {"id": "org/m"}, "engine": {"type": "llamacpp"}, "image": "example/aikit:1"}
    auto: dict[str, Any] = {
        "provisioning": "auto",
        "cpu_instance_type": "cpu-8",
        "gpu_instance_type": "gpu-1",
    }

    on_cpu = rendered(spec, NEWEST, **auto).main["resource"]
    on_gpu = rendered({**spec, "resources": {"gpu": {"count": 1}}}, NEWEST, **auto).main["resource"]
    stated = rendered({**spec, "provider": {"overrides": {"instanceType": "mine"}}}, NEWEST, **auto).main[
        "resource"
    ]

    own = {"matchLabels": {"kubefoundry.ai/model-deployment": "gemma"}}
    assert on_cpu == {"count": 1, "labelSelector": own, "instanceType": "cpu-8"}
    assert on_gpu["instanceType"] == "gpu-1"
    assert stated["instanceType"] == "mine"


@pytest.mark.parametrize(
    ("spec", "reported"),
    [
        (
            {"model": {"id": "microsoft/phi-4"}, "engine": {"type": "vllm"}},
            ["every GPU", "--trust-remote-code"],
        ),
        (
            {"model": {"id": "microsoft/phi-4"}, "engine": {"type": "vllm", "trustRemoteCode": True}},
            ["every GPU"],
        ),
        ({"model": {"id": "o/m"}, "engine": {"type": "llamacpp"}, "image": "example/aikit:1"}, ["GGUF"]),
        ({"model": {"id": "o/m"}, "engine": {"type": "vllm"}, "image": "example/vllm:1"}, []),
    ],
)
def test_notes_tell_what_kaito_decides(spec: Spec, reported: list[str]) -> None:
    notes = rendered(spec).notes

    assert len(notes) == len(reported)
    assert all(words in note for words, note in zip(reported, notes, strict=True))


def test_administrators_image_replaces_the_presets() -> None:
    spec = {"model": {"id": "microsoft/phi-4"}, "engine": {"type": "vllm"}}

    result = rendered(spec, images={"vllm": "example/vllm:2"})

    assert result.main["inference"]["template"]["spec"]["containers"][0]["image"] == "example/vllm:2"
