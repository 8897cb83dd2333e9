"""`status.endpoint.apis`: the APIs that a spec shows, and none where the image or the model's files decide."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk import Endpoint
from kubefoundry_sdk._provider.results import endpoint_problems
from kubefoundry_sdk.engine import served_apis
from kubefoundry_sdk.testing.generated import deployment

CHAT = ("openai-chat", "openai-completions")
EMBEDDINGS = ("openai-embeddings",)
SPLIT = {"serving": {"mode": "disaggregated"}}


@pytest.mark.parametrize(
    ("engine", "args", "fields", "apis"),
    [
        ("vllm", {}, {}, ()),
        ("vllm", {"runner": "generate"}, {}, CHAT),
        ("vllm", {"runner": "pooling"}, {}, ()),
        ("vllm", {"runner": "pooling", "convert": "embed"}, {}, EMBEDDINGS),
        ("vllm", {"convert": "classify"}, {}, ()),
        ("vllm", {"task": "generate"}, {}, ()),
        ("vllm", {}, SPLIT, CHAT),
        ("vllm", {"dyn-endpoint-types": "chat"}, SPLIT, ()),
        ("sglang", {}, {}, ()),
        ("sglang", {"is-embedding": "true"}, {}, EMBEDDINGS),
        ("sglang", {"is_embedding": ""}, {}, EMBEDDINGS),
        ("sglang", {"is-embedding": "false"}, {}, ()),
        ("sglang", {}, SPLIT, CHAT),
        ("trtllm", {}, {}, CHAT),
        ("llamacpp", {}, {}, CHAT),
        ("llamacpp", {"embedding": ""}, {}, EMBEDDINGS),
        ("llamacpp", {"embeddings": "true"}, {}, EMBEDDINGS),
        ("llamacpp", {"embeddings": "false"}, {}, CHAT),
        ("llamacpp", {"reranking": ""}, {}, ()),
        ("llamacpp", {}, {"env": [{"name": "LLAMA_ARG_EMBEDDINGS", "value": "1"}]}, ()),
        ("llamacpp", {}, {"secrets": {"huggingFaceToken": "s"}}, ()),
        ("trtllm", {}, {"model": {"source": "custom"}, "image": "example.com/a:1"}, ()),
        ("llamacpp", {}, {"model": {"source": "custom"}, "image": "example.com/a:1"}, ()),
    ],
)
def test_apis_follow_from_the_spec(
    engine: str, args: dict[str, str], fields: dict[str, Any], apis: tuple[str, ...]
) -> None:
    spec = deployment({"model": {"id": "org/m"}, "engine": {"type": engine, "args": args}, **fields}).spec

    assert served_apis(spec) == apis


@pytest.mark.parametrize(
    ("engine", "entries"),
    [("llamacpp", ["--embeddings"]), ("vllm", ["--convert", "embed"]), ("sglang", ["--is-embedding"])],
)
def test_deciding_flag_in_extra_args_is_not_guessed(engine: str, entries: list[str]) -> None:
    settings = {"type": engine, "extraArgs": entries, "args": {}}

    assert served_apis(deployment({"model": {"id": "org/m"}, "engine": settings}).spec) == ()


@pytest.mark.parametrize(
    "apis", [("Chat",), ("openai-chat", "openai-chat"), ("a" * 64,), tuple(f"a{n}" for n in range(17))]
)
def test_invalid_apis_are_refused(apis: tuple[str, ...]) -> None:
    assert len(list(endpoint_problems(Endpoint("m", 80, apis=apis)))) == 1
    assert not list(endpoint_problems(Endpoint("m", 80, apis=("openai-chat", "x-own"))))
