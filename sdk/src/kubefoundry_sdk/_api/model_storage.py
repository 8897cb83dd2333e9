"""`spec.model.storage`: where the engine finds weights and keeps what it compiles.

A volume states a purpose, and the provider sets the variables that the engine reads for that purpose. Volumes are
existing claims. Other sources are in `podTemplate.spec.volumes`, and mean the same to a pod without a purpose.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.fields import ApiModel
from kubefoundry_sdk._api.pods import ObjectName

MOST_VOLUMES: Final = 8

StoragePurpose = Literal["modelCache", "compilationCache", "custom"]

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


class StorageVolume(ApiModel):
    """A PersistentVolumeClaim in the engine's pods."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=formats.DNS_LABEL)]
    """Name of the volume. The provider rejects names that it uses itself."""

    claim_name: ObjectName
    """Name of the claim, in the namespace of the ModelDeployment."""

    purpose: StoragePurpose = "custom"
    """What the engine uses the volume for: modelCache (weights, in the layout of HF_HOME), compilationCache (compiled
    code) or custom (nothing by itself). At most one volume has each cache's purpose."""

    mount_path: Annotated[str, Field(max_length=1024, pattern=formats.ABSOLUTE_PATH)] | None = None
    """Path in the engine's container. Defaults to /model-cache or /compilation-cache. Required for purpose custom.
    The provider rejects paths at which it mounts a volume itself."""

    read_only: bool = False
    """Whether the engine can only read the files."""

    @property
    def path(self) -> str:
        """The path of the mount: stated, or the default of the purpose."""
        return self.mount_path or PATHS[self.purpose]


class ModelStorage(ApiModel):
    """Storage for weights and caches."""

    volumes: Annotated[
        list[StorageVolume],
        Field(
            max_length=MOST_VOLUMES,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = Field(default_factory=list)
    """Claims that the engine's pods share. Pods that run no engine (a frontend, a Ray head) mount none."""

    offline: bool = False
    """Whether the engine loads only files that are in place, and fetches nothing from the hub. A model with a missing
    file does not start."""
