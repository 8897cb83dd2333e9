"""Where an engine loads its model from: the hub, or object storage (`spec.model.storage.uri`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.command_line import Derived

LOAD_FORMAT: Final = "load-format"
"""The option of vLLM and SGLang that selects a loader."""

STREAMER: Final = "runai_streamer"
"""The loader of vLLM and SGLang that reads object storage. Their images contain its package, or need it
(vllm/model_executor/model_loader/runai_streamer_loader.py; SGLang 0.5.18, sglang/srt/utils/runai_utils.py)."""

STREAMING: Final = ("vllm", "sglang")
"""Engines that have the loader."""


def model_location(spec: ModelDeploymentSpec) -> str:
    """Return the model as the engine has to load it: a URI of object storage, or the id; empty without either."""
    return spec.model.storage.uri or spec.model.id or ""


def loader(spec: ModelDeploymentSpec) -> list[Derived]:
    """Return the option for the loader of object storage, unless `engine.args` or `engine.extraArgs` select one."""
    engine = spec.engine
    if spec.model.storage.uri is None or LOAD_FORMAT in engine.args or LOAD_FORMAT in engine.extra_flags:
        return []
    return [Derived(LOAD_FORMAT, STREAMER, "model.storage.uri")]


def location_problems(
    spec: ModelDeploymentSpec, title: str, engines: Collection[str] = STREAMING
) -> list[str]:
    """Return a sentence if the engine has no loader for object storage.

    Args:
        spec: The spec.
        title: The name of the upstream in the message.
        engines: The engines that the provider supports. The remedy names only these.
    """
    if spec.model.storage.uri is None or spec.engine.type in STREAMING:
        return []
    able = " or ".join(engine for engine in STREAMING if engine in engines)
    return [
        f"{title} knows no loader of engine {spec.engine.type} for object storage: remove model.storage.uri, and use "
        f"a volume of model.storage{f', or engine {able}' if able else ''}"
    ]
