"""`engine.extraArgs`: literal entries at the end of the command line, none of which sets an option twice."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api.validation import validate
from kubefoundry_sdk.engine import Derived, argv, repetitions
from kubefoundry_sdk.spec import ModelDeploymentSpec


def spec(engine: str, *entries: str, **args: str) -> dict[str, Any]:
    return {
        "model": {"id": "org/model"},
        "engine": {"type": engine, "extraArgs": list(entries), "args": args},
        "resources": {"gpu": {"count": 2}},
    }


@pytest.mark.parametrize(
    ("engine", "entries", "args", "problem"),
    [
        ("vllm", ("--lora-modules", "a=org/a", "b=org/b"), {}, None),
        ("llamacpp", ("-ot", "exps=CPU", "--lora", "a.gguf", "--lora", "b.gguf"), {}, None),
        ("sglang", ("--lora-paths", "-1"), {}, None),
        ("vllm", ("a=org/a",), {}, "must be a flag"),
        ("vllm", ("-1",), {}, "must be a flag"),
        ("vllm", ("--served-model-name", "x"), {}, "--served-model-name: set model.servedName instead"),
        ("vllm", ("--lora-modules", "a", "--model=org/x"), {}, "--model: set model.id instead"),
        ("llamacpp", ("-c", "9"), {}, "-c: set engine.contextLength instead"),
        ("sglang", ("--trust_remote_code",), {}, "--trust_remote_code: set engine.trustRemoteCode instead"),
        ("vllm", ("-tp", "2"), {}, "-tp, by which GPUs are counted: set it in engine.args"),
        ("trtllm", ("--tp_size=2",), {}, "--tp_size, by which GPUs are counted: set it in engine.args"),
        (
            "vllm",
            ("--max-num-seqs", "1"),
            {"max_num_seqs": "2"},
            "--max-num-seqs, which is in engine.args, too",
        ),
        ("vllm", ("--no-enable-prefix-caching",), {"enable-prefix-caching": "true"}, "in engine.args, too"),
        ("vllm", ("--served", "x"), {}, "--served: set model.servedName instead"),
        ("vllm", ("--tensor-par=8",), {}, "by which GPUs are counted"),
        ("vllm", ("-dpl", "4"), {}, "by which GPUs are counted"),
        ("vllm", ("-pcp", "4"), {}, "by which GPUs are counted"),
        ("sglang", ("--enable-dp-attention",), {}, "by which GPUs are counted"),
        ("vllm", ("--hf-overrides", "{}"), {"hf-overrides.b": "1"}, "in engine.args, too"),
        ("vllm", ("-O3",), {"O": "2"}, "in engine.args, too"),
        ("trtllm", ("--trtllm.x", "1"), {}, "only vllm has such flags"),
        ("vllm", ("--debug", "--"), {}, 'has the entry "--"'),
        ("llamacpp", ("-p", "prompt"), {}, None),
        ("vllm", ("--tokenizer", "org/t"), {"tokenizer-mode": "slow"}, None),
    ],
)
def test_flag_that_has_another_place_is_rejected(
    engine: str, entries: tuple[str, ...], args: dict[str, str], problem: str | None
) -> None:
    found = [f"{each.path}: {each.message}" for each in validate(spec(engine, *entries, **args))]

    assert len(found) == (problem is not None)
    assert all(each.startswith("spec.engine.extraArgs") and str(problem) in each for each in found)


def test_entries_end_the_command_line_literally() -> None:
    line = argv([Derived("port", "80", "the Service")], {"seed": "1"}, ["--template", "$(HOME) $$ a b"])

    assert line == ["--port", "80", "--seed", "1", "--template", "$$(HOME) $$$ a b"]


def test_derived_flag_is_named_as_written() -> None:
    engine = ModelDeploymentSpec.model_validate(spec("vllm", "--max_num_seqs=2", "--other")).engine

    said = repetitions([Derived("max-num-seqs", "1", "Widgets")], engine.extra_flags)

    assert said == ["engine.extraArgs has the flag --max_num_seqs, which Widgets sets: remove it"]


def test_problems_follow_order_of_entries() -> None:
    entries = ("--tensor-parallel-size", "2", "--model", "m", "--seed", "1", "--nnodes", "2")

    said = [each.message for each in validate(spec("vllm", *entries, seed="1"))]

    assert [message.split(",")[0].split(":")[0] for message in said] == [
        f"has the flag {flag}" for flag in ("--tensor-parallel-size", "--model", "--seed", "--nnodes")
    ]
