"""What each engine's server is started with."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_direct.provider import provider
from kubefoundry_direct.settings import Settings
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

DIRECT = provider(Settings())


def container(spec: dict[str, Any]) -> dict[str, Any]:
    main = DIRECT.render(deployment(spec), Schema("apps/v1")).main
    main_container: dict[str, Any] = main["spec"]["template"]["spec"]["containers"][0]
    return main_container


def started(
    engine: str,
    *,
    gpus: int = 1,
    cpu: str | None = None,
    cpuLimit: str | None = None,
    model: str = "org/m",
    **settings: Any,
) -> list[str]:
    """Command and args."""
    cpus = {name: amount for name, amount in (("cpu", cpu), ("cpuLimit", cpuLimit)) if amount}
    spec = {
        "model": {"id": model},
        "engine": {"type": engine, **settings},
        "resources": {"gpu": {"count": gpus}, **cpus},
    }
    main_container = container(spec)
    return [*main_container.get("command", ()), *main_container["args"]]


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (
            "vllm",
            "vllm serve s3://models/llama --served-model-name m --load-format runai_streamer --port 8000",
        ),
        (
            "sglang",
            "python3 -m sglang.launch_server --model-path s3://models/llama --served-model-name m "
            "--load-format runai_streamer --host 0.0.0.0 --port 8000",
        ),
    ],
)
def test_model_in_object_storage_keeps_its_name(engine: str, expected: str) -> None:
    spec = {
        "model": {"id": "org/m", "storage": {"uri": "s3://models/llama"}},
        "engine": {"type": engine},
        "resources": {"gpu": {"count": 1}},
    }

    engine_container = container(spec)

    assert " ".join([*engine_container["command"], *engine_container["args"]]) == expected


@pytest.mark.parametrize(
    ("engine", "settings", "expected"),
    [
        pytest.param(
            "vllm",
            {},
            "vllm serve org/m --served-model-name m --port 8000",
            id="vllm",
        ),
        pytest.param(
            "vllm",
            {
                "gpus": 4,
                "contextLength": 8192,
                "trustRemoteCode": True,
                "args": {"pp": "2", "enable-prefix-caching": "false", "seed": "7", "model": "org/m"},
            },
            "vllm serve org/m --served-model-name m --port 8000 --max-model-len 8192 --trust-remote-code "
            "--tensor-parallel-size 2 --no-enable-prefix-caching --pipeline-parallel-size 2 --seed 7",
            id="vllm with all",
        ),
        pytest.param(
            "sglang",
            {
                "gpus": 2,
                "contextLength": 8192,
                "args": {"enable-torch-compile": "true", "disable-radix-cache": "false"},
            },
            "python3 -m sglang.launch_server --model-path org/m --served-model-name m --host 0.0.0.0 --port 8000 "
            "--context-length 8192 --tensor-parallel-size 2 --enable-torch-compile",
            id="sglang",
        ),
        pytest.param(
            "trtllm",
            {
                "gpus": 2,
                "contextLength": 8192,
                "trustRemoteCode": True,
                "args": {"max-batch-size": "8", "kv_cache_config": "{}", "model": "org/m"},
            },
            "trtllm-serve org/m --served_model_name m --host 0.0.0.0 --port 8000 --max_seq_len 8192 "
            "--trust_remote_code --tensor_parallel_size 2 --config /etc/kubefoundry/engine/options.yaml "
            "--max_batch_size 8",
            id="trtllm",
        ),
        pytest.param(
            "llamacpp",
            {"gpus": 0, "contextLength": 4096, "args": {"threads": "4", "mmap": "false"}},
            "--hf-repo org/m --alias m --host 0.0.0.0 --port 8000 --ctx-size 4096 --no-mmap --threads 4",
            id="llamacpp on a CPU",
        ),
        pytest.param(
            "llamacpp",
            {"gpus": 0, "cpu": "1500m"},
            "--hf-repo org/m --alias m --host 0.0.0.0 --port 8000 --threads 2",
            id="llamacpp with the threads that it has cores for",
        ),
        pytest.param(
            "llamacpp",
            {"gpus": 0, "cpuLimit": "3"},
            "--hf-repo org/m --alias m --host 0.0.0.0 --port 8000 --threads 3",
            id="llamacpp with the threads that its CPU limit allows",
        ),
        pytest.param(
            "llamacpp",
            {"gpus": 0, "cpu": "2", "cpuLimit": "3"},
            "--hf-repo org/m --alias m --host 0.0.0.0 --port 8000 --threads 2",
            id="llamacpp with cores and a CPU limit",
        ),
        pytest.param(
            "llamacpp",
            {"gpus": 0, "cpu": "0"},
            "--hf-repo org/m --alias m --host 0.0.0.0 --port 8000 --threads 1",
            id="llamacpp with no core: 0 threads would be one for each core of the node",
        ),
        pytest.param(
            "llamacpp",
            {
                "gpus": 0,
                "args": {"flash-attn": "true", "fit": "false", "log_colors": "", "reasoning": "auto"},
            },
            "--hf-repo org/m --alias m --host 0.0.0.0 --port 8000 --fit off --flash-attn on --log-colors on "
            "--reasoning auto",
            id="llamacpp with options that take on or off",
        ),
        pytest.param(
            "llamacpp",
            {"gpus": 0, "args": {"no-fa": ""}},
            "--hf-repo org/m --alias m --host 0.0.0.0 --port 8000 --flash-attn off",
            id="llamacpp with such an option turned off by its short name",
        ),
        pytest.param(
            "llamacpp",
            {"gpus": 0, "cpu": "4", "args": {"t": "2"}},
            "--hf-repo org/m --alias m --host 0.0.0.0 --port 8000 --threads 2",
            id="llamacpp with threads stated",
        ),
        pytest.param(
            "llamacpp",
            {"model": "org/repo/sub/q4.gguf"},
            "--hf-repo org/repo --hf-file sub/q4.gguf --alias q4.gguf --host 0.0.0.0 --port 8000 --gpu-layers 999",
            id="llamacpp with a file on a GPU",
        ),
        pytest.param(
            "llamacpp",
            {"args": {"ngl": "20"}},
            "--hf-repo org/m --alias m --host 0.0.0.0 --port 8000 --gpu-layers 20",
            id="llamacpp with layers stated",
        ),
    ],
)
def test_settings_become_the_engines_command_line(
    engine: str, settings: dict[str, Any], expected: str
) -> None:
    assert started(engine, **settings) == expected.split()


@pytest.mark.parametrize(
    ("engine", "name", "value"),
    [
        ("vllm", "host", "127.0.0.1"),
        ("vllm", "uds", "/tmp/socket"),
        ("vllm", "headless", "true"),
        ("vllm", "ssl_keyfile", "/tls.key"),
        ("sglang", "grpc-mode", ""),
        ("llamacpp", "ssl-key-file", "/tls.key"),
        ("llamacpp", "api-prefix", "/v2"),
    ],
)
def test_server_that_the_probes_would_not_find_is_refused(engine: str, name: str, value: str) -> None:
    spec = {"model": {"id": "org/m"}, "engine": {"type": engine, "args": {name: value}}}

    (problem,) = DIRECT.supports(deployment({**spec, "resources": {"gpu": {"count": 1}}}), None)

    assert problem == (
        f'engine.args "{name.replace("_", "-")}" is "{value}", but the Service and the probes send HTTP to port 8000 '
        "of the pod: remove it"
    )


@pytest.mark.parametrize(("name", "value"), [("host", "0.0.0.0"), ("host", "::"), ("headless", "false")])
def test_address_that_they_find_is_taken(name: str, value: str) -> None:
    spec = {"model": {"id": "org/m"}, "engine": {"type": "vllm", "args": {name: value}}}

    assert DIRECT.supports(deployment({**spec, "resources": {"gpu": {"count": 1}}}), None) == []


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "llamacpp"])
def test_host_for_ipv6_is_taken(engine: str) -> None:
    spec = {"model": {"id": "org/m"}, "engine": {"type": engine, "args": {"host": "::"}}}
    gpu = {"resources": {"gpu": {"count": 1}}}

    assert DIRECT.supports(deployment({**spec, **gpu}), None) == []
    line = started(engine, args={"host": "::"})
    assert [line[number + 1] for number, entry in enumerate(line) if entry == "--host"] == ["::"]


def test_values_stay_entries_of_their_own() -> None:
    line = started("vllm", args={"chat-template": "a b; $(rm)"})

    assert line[-2:] == ["--chat-template", "a b; $$(rm)"]


def test_command_of_the_users_is_kubernetes_own() -> None:
    """The kubelet expands it, as it does everywhere: unlike `engine.args`, it is not escaped."""
    command = ["/serve", "--key=$(KEY)", "$$(literal)"]
    overrides = {"name": "direct", "overrides": {"command": command}}

    main_container = container(
        {"model": {"id": "org/m"}, "engine": {"type": "llamacpp"}, "provider": overrides}
    )

    assert main_container["command"] == command


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "llamacpp"])
def test_image_with_its_model_starts_in_its_own_way(engine: str) -> None:
    spec = {
        "model": {"source": "custom"},
        "image": "example/own:1",
        "engine": {"type": engine, "args": {"model": "/models/x"} if engine != "trtllm" else {}},
        "resources": {"gpu": {"count": 1}},
    }

    main_container = container(spec)

    assert "command" not in main_container
    assert "org/m" not in main_container["args"] and "served" not in " ".join(main_container["args"])
    assert ("/models/x" in main_container["args"]) == (engine != "trtllm")


def test_keys_of_tensorrt_llm_are_read_from_a_file() -> None:
    args = {"kv_cache_config": '{"dtype":"fp8"}', "enable_chunked_prefill": "", "backend": "pytorch"}
    spec = {
        "model": {"id": "org/m"},
        "engine": {"type": "trtllm", "args": args},
        "resources": {"gpu": {"count": 1}},
    }

    template = DIRECT.render(deployment(spec), Schema("apps/v1")).main["spec"]["template"]

    assert template["metadata"]["annotations"]["kubefoundry.ai/engine-options"] == (
        '{"backend": "pytorch", "enable_chunked_prefill": true, "kv_cache_config": {"dtype": "fp8"}}'
    )
    [volume] = [volume for volume in template["spec"]["volumes"] if volume["name"] == "engine-options"]
    [item] = volume["downwardAPI"]["items"]
    assert item["path"] == "options.yaml"
    [mount] = [
        mount
        for mount in template["spec"]["containers"][0]["volumeMounts"]
        if mount["name"] == "engine-options"
    ]
    assert mount["mountPath"] == "/etc/kubefoundry/engine"
