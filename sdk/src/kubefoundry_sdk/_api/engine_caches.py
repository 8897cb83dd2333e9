"""Folders and variables of the engines' caches: where a mount of `spec.model.storage` tells an engine to look.

Apart from the typed model of the field, because core needs only the names.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final

PATHS: Final[Mapping[str, str]] = {"modelCache": "/model-cache", "compilationCache": "/compilation-cache"}
"""Default path of the mount, by purpose."""

_FROM_HUB: Final = ("vllm", "sglang", "trtllm")
"""Engines that load models with the package huggingface_hub."""

_COMPILED: Final = {"TORCHINDUCTOR_CACHE_DIR": "/inductor", "TRITON_CACHE_DIR": "/triton"}

FOLDERS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "modelCache": {
        **{engine: {"HF_HOME": ""} for engine in _FROM_HUB},
        # LLAMA_CACHE has the layout of HF_HUB_CACHE (llama.cpp common/hf-cache.cpp), so all engines can share a claim
        "llamacpp": {"HF_HOME": "", "LLAMA_CACHE": "/hub"},
    },
    "compilationCache": {
        # vLLM keeps the caches of torch.compile, Triton and DeepGEMM below it (vllm/envs.py)
        "vllm": {"VLLM_CACHE_ROOT": ""},
        # SGLang 0.5.18 derives the others from the first, earlier releases do not (sglang/srt/environ.py)
        "sglang": {"SGLANG_CACHE_DIR": "", **_COMPILED},
        "trtllm": _COMPILED,
    },
}
"""Variables that name a folder of a cache: the folder below the mount, by purpose, engine and variable."""

OFFLINE: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_FROM_HUB, ("HF_HUB_OFFLINE",)),
    # its name since 2026, and the one before
    "llamacpp": ("LLAMA_ARG_OFFLINE", "LLAMA_OFFLINE"),
}
"""Variables that keep an engine from the hub, by engine. Their value is 1."""

DECIDING: Final[Mapping[str, tuple[str, ...]]] = {
    "modelCache": ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "LLAMA_CACHE"),
    "compilationCache": ("VLLM_CACHE_ROOT", "SGLANG_CACHE_DIR", *_COMPILED),
}
"""Variables that decide where a cache is, by purpose: `env` may not set them beside a volume for it."""

MODULES: Final = {"HF_MODULES_CACHE": "/tmp/huggingface-modules"}
"""Where transformers writes the code of a model's repository if HF_HOME is read-only."""


def cache_variables(purpose: str, engine: str, path: str) -> dict[str, str]:
    """Return the variables by which an engine finds a cache at a path; empty for purpose custom."""
    folders = FOLDERS.get(purpose, {}).get(engine, {})
    # the kubelet expands $(NAME) in the value of a variable, but not in a path
    return {name: posixpath.normpath(path + folder).replace("$", "$$") for name, folder in folders.items()}
