"""The APIs of an engine's server, as far as the spec shows them (`status.endpoint.apis`).

vLLM and SGLang find out from the model's files whether the model generates text or embeds it, so a spec often shows
nothing. A wrong entry would send clients to an API that answers with an error.
"""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk._api.flag_names import dashed
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec

GENERATES: Final = ("openai-chat", "openai-completions")
EMBEDS: Final = ("openai-embeddings",)
UNKNOWN: Final[tuple[str, ...]] = ()

_DECIDING: Final = {
    "vllm": ("runner", "convert", "task"),
    "sglang": ("is-embedding",),
    "trtllm": (),
    "llamacpp": ("embedding", "embeddings", "rerank", "reranking"),
}
"""Flags that decide which APIs an engine offers."""

_VARIABLES: Final = ("LLAMA_ARG_EMBEDDINGS", "LLAMA_ARG_RERANKING")
"""llama-server reads these for the same flags."""


def served_apis(spec: ModelDeploymentSpec) -> tuple[str, ...]:
    """Return the APIs that the engine's server offers; empty if the spec does not show them.

    `openai-chat` is `/v1/chat/completions`, `openai-completions` is `/v1/completions`, and `openai-embeddings` is
    `/v1/embeddings`.

    Args:
        spec: The spec. The engine's own server has to run, and not a command or an image of the user's.
    """
    engine = spec.engine.type or ""
    deciding = _DECIDING.get(engine, ())
    if any(
        flag.endswith("endpoint-types") for flag in map(dashed, (*spec.engine.args, *spec.engine.extra_flags))
    ):
        return UNKNOWN  # Dynamo's workers register with the APIs of this flag
    if (
        spec.model.source == "custom"
        or engine not in _DECIDING
        or spec.engine.extra_flags.keys() & {*deciding}
    ):
        return UNKNOWN
    if spec.serving.mode == "disaggregated" or engine == "trtllm":
        # trtllm-serve has commands of their own for other models, and only generation has prefill and decode.
        return GENERATES
    if engine == "llamacpp":
        return _of_llama_server(spec)
    if engine == "sglang":
        return EMBEDS if _is_on(spec, "is-embedding") else UNKNOWN
    if "task" in spec.engine.args:
        return UNKNOWN  # vLLM no longer has it
    if spec.engine.args.get("runner") == "generate":
        return GENERATES
    return EMBEDS if spec.engine.args.get("convert") == "embed" else UNKNOWN


def _of_llama_server(spec: ModelDeploymentSpec) -> tuple[str, ...]:
    """Return the APIs of llama-server: with its flag for embeddings, it offers nothing else."""
    if any(variable.get("name") in _VARIABLES for variable in spec.env) or spec.secrets.hugging_face_token:
        # Each key of the Secret is a variable, too.
        return UNKNOWN
    if _is_on(spec, "rerank") or _is_on(spec, "reranking"):
        return UNKNOWN
    return EMBEDS if _is_on(spec, "embedding") or _is_on(spec, "embeddings") else GENERATES


def _is_on(spec: ModelDeploymentSpec, flag: str) -> bool:
    return spec.engine.args.get(flag, "false") != "false"
