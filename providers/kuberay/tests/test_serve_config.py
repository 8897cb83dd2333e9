"""serveConfigV2: what Ray Serve gets."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_kuberay.serve_config import serve_config
from kubefoundry_sdk.testing.generated import deployment

Spec = dict[str, Any]


def aggregated(*, gpus: int = 1, replicas: int = 1, model: Spec | None = None, **engine: Any) -> Spec:
    return {
        "model": model or {"id": "meta-llama/Llama-3.1-8B-Instruct"},
        "engine": {"type": "vllm", **engine},
        "resources": {"gpu": {"count": gpus}},
        "scaling": {"replicas": replicas},
    }


def disaggregated(**engine: Any) -> Spec:
    return {
        "model": {"id": "org/model"},
        "engine": {"type": "vllm", **engine},
        "serving": {"mode": "disaggregated"},
        "scaling": {
            "prefill": {"replicas": 1, "gpu": {"count": 4}, "memory": "64Gi"},
            "decode": {"replicas": 2, "gpu": {"count": 1}, "memory": "32Gi"},
        },
    }


def application(spec: Spec) -> Spec:
    (serve_application,) = yaml.safe_load(serve_config(deployment(spec).spec))["applications"]
    return dict(serve_application)


def engine_kwargs(spec: Spec) -> Spec:
    return dict(application(spec)["args"]["llm_configs"][0]["engine_kwargs"])


def test_aggregated_application() -> None:
    spec = aggregated(
        gpus=2, replicas=3, contextLength=8192, trustRemoteCode=True, args={"quantization": "awq"}
    )

    assert application(spec) == {
        "name": "llm",
        "route_prefix": "/",
        "import_path": "ray.serve.llm:build_openai_app",
        "args": {
            "llm_configs": [
                {
                    "model_loading_config": {
                        "model_id": "Llama-3.1-8B-Instruct",
                        "model_source": "meta-llama/Llama-3.1-8B-Instruct",
                    },
                    "engine_kwargs": {
                        "max_model_len": 8192,
                        "quantization": "awq",
                        "tensor_parallel_size": 2,
                        "trust_remote_code": True,
                    },
                    "deployment_config": {"num_replicas": 1},
                }
            ]
        },
        "deployments": [{"name": "LLMServer:Llama-3_1-8B-Instruct", "num_replicas": 3}],
    }


def test_disaggregated_engines_run_on_workers_of_their_role() -> None:
    transfer = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
    loading = {"model_id": "model", "model_source": "org/model"}

    assert application(disaggregated()) == {
        "name": "llm",
        "route_prefix": "/",
        "import_path": "ray.serve.llm:build_pd_openai_app",
        "args": {
            "prefill_config": {
                "model_loading_config": loading,
                "engine_kwargs": {"kv_transfer_config": transfer, "tensor_parallel_size": 4},
                "deployment_config": {"num_replicas": 1},
                "placement_group_config": {"bundles": [{"GPU": 1, "prefill": 1}] * 4},
            },
            "decode_config": {
                "model_loading_config": loading,
                "engine_kwargs": {"kv_transfer_config": transfer, "tensor_parallel_size": 1},
                "deployment_config": {"num_replicas": 1},
                "placement_group_config": {"bundles": [{"GPU": 1, "decode": 1}]},
            },
        },
        "deployments": [
            {"name": "Prefill:model", "num_replicas": 1},
            {"name": "Decode:model", "num_replicas": 2},
        ],
    }


def test_scaling_changes_the_replica_count_and_no_argument() -> None:
    """A change of the arguments would replace every running engine."""
    single, four = application(aggregated(replicas=1)), application(aggregated(replicas=4))

    assert single["args"] == four["args"]
    assert [single["deployments"][0].pop("num_replicas"), four["deployments"][0].pop("num_replicas")] == [
        1,
        4,
    ]
    assert single == four


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", True),
        ("true", True),
        ("false", False),
        ("8", 8),
        ("-1", -1),
        ("0.9", 0.9),
        ("1e-3", 0.001),
        ("awq", "awq"),
        ("True", "True"),
        ("null", "null"),
        ("0x10", "0x10"),
        ("1e999", "1e999"),
        ("9" * 30, "9" * 30),
        ("٣", "٣"),
        ('{"level": 3}', {"level": 3}),
        ("[1, 2]", [1, 2]),
        ("{not json", "{not json"),
        ("two words", "two words"),
    ],
)
def test_engine_argument_gets_its_type(text: str, value: Any) -> None:
    argument = engine_kwargs(aggregated(args={"some-argument": text}))["some_argument"]

    assert (argument, type(argument)) == (value, type(value))


@pytest.mark.parametrize("flag", ["revision", "code-revision", "tokenizer_revision"])
def test_revision_of_digits_stays_text(flag: str) -> None:
    arguments = engine_kwargs(aggregated(args={flag: "1234567"}))

    assert arguments[flag.replace("-", "_")] == "1234567"


@pytest.mark.parametrize(
    ("args", "sizes"),
    [
        ({}, (8, None)),
        ({"tensor-parallel-size": "4"}, (4, None)),
        ({"pipeline-parallel-size": "2"}, (4, 2)),
        ({"tensor-parallel-size": "2", "pipeline-parallel-size": "2"}, (2, 2)),
        ({"pipeline-parallel-size": "3"}, (2, 3)),
    ],
)
def test_parallel_sizes_use_all_gpus_unless_stated(args: Spec, sizes: tuple[int, int | None]) -> None:
    arguments = engine_kwargs(aggregated(gpus=8, args=args))

    assert (arguments["tensor_parallel_size"], arguments.get("pipeline_parallel_size")) == sizes


def test_model_arguments_go_to_the_model_loading_config() -> None:
    """Ray refuses them among the engine's arguments."""
    spec = aggregated(
        model={"id": "org/model", "servedName": "m"}, args={"model": "org/model", "served-model-name": "m"}
    )

    assert engine_kwargs(spec) == {"tensor_parallel_size": 1}


def test_stated_transfer_of_the_cache_replaces_ours() -> None:
    stated = '{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}'
    args = application(disaggregated(args={"kv-transfer-config": stated}))["args"]

    connectors = {
        config["engine_kwargs"]["kv_transfer_config"]["kv_connector"]
        for config in (args["prefill_config"], args["decode_config"])
    }
    assert connectors == {"LMCacheConnectorV1"}


@given(st.text(min_size=1, max_size=40))
def test_any_text_survives_the_way_through_yaml(text: str) -> None:
    spec = aggregated(args={"revision": text})

    assert engine_kwargs(spec)["revision"] == text


@pytest.mark.parametrize(
    "text", ["12e4567", "1e5", "0o17", "y", "no", "on", "~", "0b1", "1:30", "2001-01-01"]
)
def test_text_that_another_yaml_parser_reads_otherwise_is_quoted(text: str) -> None:
    assert f'revision: "{text}"' in serve_config(deployment(aggregated(args={"revision": text})).spec)
