"""The workers' command lines by engine, role and runtime version (sources §2.7, §4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubefoundry_dynamo.engines import vllm
from kubefoundry_dynamo.engines.command_line import Role, Worker
from kubefoundry_dynamo.graph import ARGUMENTS
from kubefoundry_dynamo.versions import Version
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec


def argv(
    engine: str,
    *,
    role: Role = "worker",
    runtime: tuple[int, int] = (1, 4),
    gpus: int = 2,
    kv_events: bool = False,
    model: dict[str, Any] | None = None,
    **fields: Any,
) -> list[str]:
    spec = ModelDeploymentSpec.model_validate(
        {"model": model or {"id": "org/m"}, "engine": {"type": engine, **fields}}
    )
    return ARGUMENTS[engine](spec, Worker(role, gpus, Version(*runtime), kv_events))


def after(argv: list[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


@pytest.mark.parametrize(
    ("runtime", "role", "flags"),
    [
        ((0, 4), "prefill", ["--is-prefill-worker"]),
        ((0, 4), "decode", []),
        ((0, 5), "decode", []),
        ((0, 6), "decode", ["--is-decode-worker"]),
        ((0, 9), "prefill", ["--is-prefill-worker"]),
        ((0, 9), "decode", ["--is-decode-worker"]),
        ((1, 0), "prefill", ["--disaggregation-mode", "prefill", "--kv-transfer-config", vllm.KV_TRANSFER]),
        ((1, 4), "decode", ["--disaggregation-mode", "decode", "--kv-transfer-config", vllm.KV_TRANSFER]),
        ((1, 4), "worker", []),
        ((0, 7), "worker", []),
    ],
)
def test_vllm_roles_follow_the_runtime(runtime: tuple[int, int], role: Role, flags: list[str]) -> None:
    common = ["--model", "org/m", "--served-model-name", "m", "--tensor-parallel-size", "2"]

    assert argv("vllm", role=role, runtime=runtime) == [*common, *flags]


def test_sglang_roles() -> None:
    assert argv("sglang", role="decode", contextLength=8, trustRemoteCode=True) == [
        *("--model-path", "org/m", "--served-model-name", "m"),
        *("--context-length", "8"),
        "--trust-remote-code",
        *("--tp-size", "2"),
        *("--disaggregation-mode", "decode"),
        *("--disaggregation-transfer-backend", "nixl"),
        *("--disaggregation-bootstrap-port", "12345"),
        *("--host", "0.0.0.0"),
    ]


@pytest.mark.parametrize(
    ("role", "configuration"),
    [
        ("prefill", {"cache_transceiver_config": {"backend": "DEFAULT"}, "disable_overlap_scheduler": True}),
        ("decode", {"cache_transceiver_config": {"backend": "DEFAULT"}}),
    ],
)
def test_trtllm_roles(role: Role, configuration: dict[str, Any]) -> None:
    line = argv("trtllm", role=role, contextLength=8)

    assert after(line, "--disaggregation-mode") == role
    assert after(line, "--max-seq-len") == "8"
    assert json.loads(after(line, "--override-engine-args")) == configuration


def test_trtllm_engine_keys_become_one_typed_json() -> None:
    line = argv(
        "trtllm",
        trustRemoteCode=True,
        args={
            "kv_cache_config": '{"free_gpu_memory_fraction": 0.8}',
            "enable_block_reuse": "",
            "stop": "false",
            "backend": "pytorch",
            "limit": "NaN",
            "max-batch-size": "8",
        },
    )

    assert json.loads(after(line, "--override-engine-args")) == {
        "trust_remote_code": True,
        "kv_cache_config": {"free_gpu_memory_fraction": 0.8},
        "enable_block_reuse": True,
        "stop": False,
        "backend": "pytorch",
        "limit": "NaN",
    }
    assert line[-2:] == ["--max-batch-size", "8"]
    assert "--override-engine-args" not in argv("trtllm")


def test_args_are_sorted_entries_of_their_own() -> None:
    line = argv("vllm", args={"b": "x y; $(rm) 'q'", "a": "", "d": "false", "c": "true"})

    assert line[-5:] == ["--a", "--b", "x y; $$(rm) 'q'", "--c", "--no-d"]


@pytest.mark.parametrize("args", [{"max-model-len": "16"}, {"max_model_len": "16"}])
def test_arg_takes_the_place_of_the_same_flag(args: dict[str, str]) -> None:
    line = argv("vllm", contextLength=16, args=args)

    assert line.count("16") == 1


@pytest.mark.parametrize(
    ("engine", "derived", "stated", "tensor"),
    [
        ("vllm", "--tensor-parallel-size", "pipeline-parallel-size", "2"),
        ("vllm", "--tensor-parallel-size", "data_parallel_size", "2"),
        ("vllm", "--tensor-parallel-size", "pp", "2"),
        ("sglang", "--tp-size", "tp", None),
        ("sglang", "--tp-size", "dp-size", "2"),
        ("trtllm", "--tensor-parallel-size", "pipeline-parallel-size", "2"),
        ("trtllm", "--tensor-parallel-size", "tensor_parallel_size", None),
    ],
)
def test_tensor_parallel_size_uses_the_remaining_gpus(
    engine: str, derived: str, stated: str, tensor: str | None
) -> None:
    assert after(argv(engine, gpus=4), derived) == "4"
    line = argv(engine, gpus=4, args={stated: "2"})
    assert (after(line, derived) if derived in line else None) == tensor


@pytest.mark.parametrize(
    ("engine", "args", "ending", "not_there"),
    [
        ("vllm", {"tp": "2"}, ["--tensor-parallel-size", "2"], "--tp"),
        ("vllm", {"no-enable-prefix-caching": ""}, ["--no-enable-prefix-caching"], "--enable-prefix-caching"),
        ("vllm", {"enable_prefix_caching": "false"}, ["--no-enable-prefix-caching"], ""),
        ("sglang", {"disable-radix-cache": "false"}, [], "--no-disable-radix-cache"),
    ],
)
def test_flag_has_the_form_that_the_engine_knows(
    engine: str, args: dict[str, str], ending: list[str], not_there: str
) -> None:
    line = argv(engine, gpus=2, args=args)

    assert line[len(line) - len(ending) :] == ending
    assert not_there not in line


@pytest.mark.parametrize(
    ("engine", "runtime", "flag"),
    [
        ("vllm", (0, 7), "--kv-events-config"),
        ("vllm", (1, 4), "--kv-events-config"),
        ("sglang", (1, 0), "--kv-events-config"),
        ("trtllm", (1, 3), "--publish-events-and-metrics"),
        ("trtllm", (1, 4), "--publish-kv-events"),
    ],
)
def test_kv_events(engine: str, runtime: tuple[int, int], flag: str) -> None:
    assert flag in argv(engine, runtime=runtime, kv_events=True)
    assert flag not in argv(engine, runtime=runtime)


@pytest.mark.parametrize("name", ["true", "false", "1"])
def test_served_name_is_never_read_as_a_switch(name: str) -> None:
    assert after(argv("vllm", model={"id": "org/m", "servedName": name}), "--served-model-name") == name


@pytest.mark.parametrize("engine", sorted(ARGUMENTS))
def test_custom_image_states_the_model_itself(engine: str) -> None:
    line = argv(engine, model={"source": "custom", "id": "org/m", "servedName": "x"})

    assert "org/m" not in line
    assert "--served-model-name" not in line
