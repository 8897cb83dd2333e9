from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api import engine_args, engine_choice, validation
from kubefoundry_sdk._api.engine_args import ENGINES
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._api.validation import Problem
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
def test_engine_arg_that_contradicts_a_field_is_rejected(
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
        ("trtllm", {"kv_cache_config": '{"a": 1}', "tensor-parallel-size": "1"}, {}),
        ("vllm", {"no-trust-remote-code": ""}, {}),
    ],
)
def test_engine_arg_beside_the_fields_is_accepted(
    engine: str, args: dict[str, str], changes: dict[str, Any]
) -> None:
    assert validation.validate(_spec(engine, args, **changes)) == []


@pytest.mark.parametrize(
    ("engine", "args", "words"),
    [
        ("sglang", {"load.b": "1"}, "has a dot, and only vllm has such flags: set load to a JSON value"),
        ("llamacpp", {"rope.scale": "1"}, "only vllm has such flags"),
        ("trtllm", {"kv_cache_config.x": "1"}, "set kv_cache_config to a JSON value"),
        ("vllm", {"hf-overrides.": "1"}, "has an empty key"),
        ("vllm", {"hf-overrides..x": "1"}, "has an empty key"),
        ("vllm", {"hf-overrides": "{}", "hf_overrides.a": "1"}, "is a part of hf-overrides: set only one"),
        ("vllm", {"hf-overrides.a_b": "1", "hf_overrides.a_b": "2"}, "is the same flag as hf-overrides.a_b"),
        ("vllm", {"X": "1"}, "is not a short flag that is known here: write the long flag"),
        ("vllm", {"zz": "1"}, "is not a short flag that is known here"),
        ("vllm", {"zz.a": "1"}, "is not a short flag that is known here"),
        ("sglang", {"q": "1"}, "is not a short flag that is known here"),
        ("llamacpp", {"zz": "1"}, "is not a short flag that is known here"),
        ("trtllm", {"qq": "1"}, "is not a short flag that is known here"),
        ("trtllm", {"tp": "1"}, "is not a short flag that is known here"),
        *((engine, {"zz.a": "1"}, "is not a short flag that is known here") for engine in ENGINES),
    ],
)
def test_dotted_and_short_flags_are_refused_if_unknown(engine: str, args: dict[str, str], words: str) -> None:
    (problem,) = validation.validate(_spec(engine, args))

    assert words in problem.message


@pytest.mark.parametrize("flag", ["qq", "zz.a"])
def test_flag_that_no_engine_has_is_refused_by_name(flag: str) -> None:
    spec = changed(AGGREGATED, engine={"args": {flag: "1"}})

    assert validation.validate(spec) == [
        Problem(f"spec.engine.args[{flag}]", "is not a short flag that is known here: write the long flag")
    ]


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        (
            {"args": {"q": "awq"}},
            "engine.args[q]: is not a short flag that is known here: write the long flag",
        ),
        (
            {"args": {"tp": "1", "tp-size": "1"}},
            "engine.args[tp-size]: is the same flag as tp: remove one",
        ),
        (
            {"extraArgs": ["--model-path", "x"]},
            "engine.extraArgs: has the flag --model-path: set model.id instead",
        ),
        ({"args": {"enforce-eager": "true"}}, ""),
    ],
)
def test_reason_against_an_engine_names_the_flag(engine: dict[str, Any], reason: str) -> None:
    assert engine_choice.problem_with(changed(AGGREGATED, engine=engine), "sglang") == reason


def test_reason_against_an_engine_may_be_a_rule() -> None:
    spec = changed(AGGREGATED, engine={}, resources={})

    assert (
        engine_choice.problem_with(spec, "vllm") == "vLLM engine requires GPU (set resources.gpu.count > 0)"
    )


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"hf_overrides.rope_scaling.rope_type": "yarn"}, {"hf-overrides.rope_scaling.rope_type": "yarn"}),
        (
            {"hf-overrides.a": "", "hf-overrides.b_c": "1"},
            {"hf-overrides.a": "true", "hf-overrides.b_c": "1"},
        ),
        ({"cc.mode": "3", "O": "3"}, {"compilation-config.mode": "3", "optimization-level": "3"}),
        ({"n": "2", "dcp": "2"}, {"nnodes": "2", "decode-context-parallel-size": "2"}),
    ],
)
def test_canonical_flags_keep_the_keys_after_a_dot(args: dict[str, str], expected: dict[str, str]) -> None:
    assert validation.validate(_spec("vllm", args)) == []
    assert engine_args.effective("vllm", args) == expected


@pytest.mark.parametrize("name", ["--enforce-eager", "-x", "", "two words", "a=b", "x\n"])
def test_engine_arg_that_is_no_flag_is_rejected(name: str) -> None:
    (problem,) = validation.validate(_spec("vllm", {name: "x"}))

    assert problem.message == "the key must be the name of a flag without its leading dashes"


GPUS = {"resources": {"gpu": {"count": 4}}}


@pytest.mark.parametrize(
    ("engine", "args", "expected"),
    [
        ("vllm", {}, (4, 1, 1)),
        ("vllm", {"pipeline-parallel-size": "2"}, (2, 2, 1)),
        ("vllm", {"pp": "2", "dp": "2"}, (1, 2, 2)),
        ("vllm", {"tp": "2"}, (2, 1, 1)),
        ("vllm", {"pipeline_parallel_size": "3"}, (1, 3, 1)),
        ("vllm", {"dp": "2", "data-parallel-rank": "1"}, (4, 1, 1)),
        ("sglang", {"dp-size": "2"}, (2, 1, 2)),
        ("sglang", {"dp-size": "2", "enable-dp-attention": ""}, (4, 1, 1)),
        ("trtllm", {"pipeline_parallel_size": "2"}, (2, 2, 1)),
        ("trtllm", {"pp-size": "2"}, (2, 2, 1)),
        ("vllm", {"tp": "many"}, (4, 1, 1)),
    ],
)
def test_parallel_sizes_of_four_gpus(
    engine: str, args: dict[str, str], expected: tuple[int, int, int]
) -> None:
    assert engine_args.parallel(engine, args, 4) == expected


@pytest.mark.parametrize(
    ("args", "gpus", "nodes", "expected"),
    [
        ({}, 16, 2, (8, 2, 1)),
        ({"tp": "16"}, 16, 2, (16, 1, 1)),
        ({"tp": "8"}, 16, 2, (8, 2, 1)),
        ({"tp": "4"}, 16, 2, (4, 2, 1)),
        ({"pp": "1"}, 16, 2, (16, 1, 1)),
        ({"pp": "4"}, 16, 2, (4, 4, 1)),
        ({"dp": "2"}, 16, 2, (8, 1, 2)),
        ({"dp": "2"}, 16, 4, (4, 2, 2)),
        ({"dp": "3"}, 24, 2, (4, 2, 3)),
        ({}, 1, 2, (1, 1, 1)),
    ],
)
def test_parallel_sizes_of_several_nodes(
    args: dict[str, str], gpus: int, nodes: int, expected: tuple[int, int, int]
) -> None:
    assert engine_args.parallel("vllm", args, gpus, nodes=nodes) == expected


SIZES = st.sampled_from(["1", "2", "3", "4", "8", "16", "many", "0"])


@given(
    st.sampled_from(["vllm", "sglang"]),
    st.dictionaries(st.sampled_from(["tp-size", "pp-size", "dp-size"]), SIZES),
    st.integers(1, 8),
    st.integers(1, 16),
)
def test_parallel_sizes_keep_stated_ones_and_fit(
    engine: str, args: dict[str, str], gpus_of_a_node: int, nodes: int
) -> None:
    gpus, long = gpus_of_a_node * nodes, {"tp-size": "tensor", "pp-size": "pipeline", "dp-size": "data"}
    spelled = args if engine == "sglang" else {f"{long[name]}-parallel-size": args[name] for name in args}
    numbers = {long[name]: int(value) for name, value in args.items() if value not in ("many", "0")}

    stated = engine_args.stated_sizes(engine, spelled)
    sizes = engine_args.parallel(engine, spelled, gpus, nodes=nodes)

    assert {name: size for name, size in stated._asdict().items() if size is not None} == numbers
    assert numbers.items() <= sizes._asdict().items(), "stated sizes are kept"
    least = engine_args.Parallel(*(size or 1 for size in stated))
    assert sizes.gpus <= max(gpus, least.gpus), "derived sizes need no GPUs that are not there"
    if not numbers:
        assert sizes == (gpus_of_a_node, nodes, 1), "tensor parallelism stays within a node"


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"tensor-parallel-size": "8"}, "parallel sizes need 8 GPUs a replica"),
        ({"tensor-parallel-size": "4", "pipeline-parallel-size": "2"}, "but resources.gpu.count is 4"),
        ({"tensor_parallel_size": "0"}, 'must be an integer from 1 to 999999, not "0"'),
        ({"pipeline-parallel-size": "true"}, 'must be an integer from 1 to 999999, not "true"'),
        ({"tensor-parallel-size": "2", "tensor_parallel_size": "2"}, "is the same flag as"),
    ],
)
def test_sizes_that_cannot_be_are_refused(engine: str, args: dict[str, str], words: str) -> None:
    (problem,) = validation.validate(_spec(engine, args, **GPUS))

    assert words in problem.message


@pytest.mark.parametrize(
    "value",
    [
        '{"a":"\\ud800"}',
        '["\\uDFFF"]',
        '{"\\ud83d":1}',
        '{"a":' + "9" * 400 + "}",
        "1e999",
        "NaN",
        "[" * 40 + "]" * 40,
    ],
)
def test_json_that_cannot_be_written_again_stays_text(value: str) -> None:
    with pytest.raises(ValueError):
        engine_args.json_value(value)

    assert engine_args.typed(value) == value


@pytest.mark.parametrize(
    ("engine", "flag", "other", "value"),
    [
        ("vllm", "tp", "tensor-parallel-size", "1"),
        ("vllm", "max_num_seqs", "max-num-seqs", "1"),
        ("vllm", "no-enable-prefix-caching", "enable-prefix-caching", ""),
        ("sglang", "tp", "tp-size", "1"),
        ("llamacpp", "c", "ctx-size", "1"),
        ("llamacpp", "ngl", "n-gpu-layers", "1"),
        ("trtllm", "tp-size", "tensor-parallel-size", "1"),
    ],
)
def test_two_names_of_one_flag_are_refused(engine: str, flag: str, other: str, value: str) -> None:
    problems = validation.validate(_spec(engine, {flag: value, other: value}))

    assert [problem.message for problem in problems] == [f"is the same flag as {flag}: remove one"]


@pytest.mark.parametrize(
    ("engine", "args", "expected"),
    [
        ("vllm", {"tp": "2", "max_num_seqs": "7"}, {"tensor-parallel-size": "2", "max-num-seqs": "7"}),
        ("vllm", {"no-x": ""}, {"x": "false"}),
        ("vllm", {"no_x": "false"}, {"x": ""}),
        ("vllm", {"no-x": "7"}, {"no-x": "7"}),
        ("sglang", {"no-x": ""}, {"no-x": ""}),
        ("llamacpp", {"c": "1"}, {"ctx-size": "1"}),
        ("llamacpp", {"ctk": "f16", "n": "7"}, {"cache-type-k": "f16", "predict": "7"}),
        ("trtllm", {"tp-size": "2"}, {"tensor-parallel-size": "2"}),
        ("trtllm", {"kv_cache_config": "{}"}, {"kv_cache_config": "{}"}),
    ],
)
def test_providers_see_one_name_of_each_flag(
    engine: str, args: dict[str, str], expected: dict[str, str]
) -> None:
    raw = {"engine": {"type": engine, "args": args}}

    assert ModelDeploymentSpec.model_validate(raw).engine.args == expected
    assert raw["engine"]["args"] == args
