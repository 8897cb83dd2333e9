from typing import Any

import pytest

from kubefoundry_sdk.api import validation
from support.refused_specs import AGGREGATED, changed


def _spec(engine: str, args: dict[str, str], **changes: Any) -> dict[str, Any]:
    return changed(AGGREGATED, engine__type=engine, engine__args=args, **changes)


@pytest.mark.parametrize(
    ("engine", "args", "changes", "message"),
    [
        ("vllm", {"max-model-len": "1"}, {"engine__contextLength": 2}, "engine.contextLength"),
        ("vllm", {"max_model_len": "1"}, {"engine__contextLength": 2}, "engine.contextLength"),
        ("sglang", {"context-length": "1"}, {"engine__contextLength": 2}, "engine.contextLength"),
        ("trtllm", {"max-seq-len": "1"}, {"engine__contextLength": 2}, "engine.contextLength"),
        ("llamacpp", {"ctx-size": "1"}, {"engine__contextLength": 2}, "engine.contextLength"),
        ("llamacpp", {"c": "1"}, {"engine__contextLength": 2}, "engine.contextLength"),
        ("vllm", {"served-model-name": "x"}, {"model__servedName": "y"}, "model.servedName"),
        ("vllm", {"served-model-name": "x"}, {}, "model.servedName"),
        ("llamacpp", {"alias": "x"}, {}, "model.servedName"),
        ("vllm", {"trust-remote-code": ""}, {}, "engine.trustRemoteCode"),
        (
            "sglang",
            {"trust-remote-code": "false"},
            {"engine__trustRemoteCode": True},
            "engine.trustRemoteCode",
        ),
        ("vllm", {"model": "other/model"}, {}, "model.id"),
        ("trtllm", {"model-path": "other/model"}, {}, "model.id"),
    ],
)
def test_an_arg_that_contradicts_a_field_is_refused(
    engine: str, args: dict[str, str], changes: dict[str, Any], message: str
) -> None:
    (problem,) = validation.validate(_spec(engine, args, **changes))

    assert problem.path == f"spec.engine.args[{next(iter(args))}]"
    assert problem.message.endswith(f"set only {message}")


@pytest.mark.parametrize(
    ("engine", "args", "changes"),
    [
        ("vllm", {"max-model-len": "1"}, {}),
        ("vllm", {"max-model-len": "1"}, {"engine__contextLength": 1}),
        ("vllm", {"context-length": "1"}, {"engine__contextLength": 2}),
        ("vllm", {"served-model-name": "Llama-3.1-8B-Instruct"}, {}),
        ("vllm", {"served-model-name": "x"}, {"model": {"source": "custom"}, "image": "i"}),
        ("vllm", {"model": "/models/x"}, {"model": {"source": "custom"}, "image": "i"}),
        ("vllm", {"trust-remote-code": ""}, {"engine__trustRemoteCode": True}),
        ("vllm", {"trust-remote-code": "true"}, {"engine__trustRemoteCode": True}),
        ("vllm", {"trust-remote-code": "false"}, {}),
        ("trtllm", {"kv_cache_config": '{"a": 1}', "tensor-parallel-size": "8"}, {}),
    ],
)
def test_an_arg_beside_the_fields_is_taken(
    engine: str, args: dict[str, str], changes: dict[str, Any]
) -> None:
    assert validation.validate(_spec(engine, args, **changes)) == []


@pytest.mark.parametrize("name", ["--enforce-eager", "-x", "", "two words", "a=b", "x\n"])
def test_a_key_that_is_no_flag_is_refused(name: str) -> None:
    (problem,) = validation.validate(_spec("vllm", {name: "x"}))

    assert problem.message == "the key must be the name of a flag without its leading dashes"
