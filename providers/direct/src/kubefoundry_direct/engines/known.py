"""The engines by their names in `spec.engine.type`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubefoundry_direct.engines.engine import Engine
from kubefoundry_direct.engines.llamacpp import LLAMACPP
from kubefoundry_direct.engines.sglang import SGLANG
from kubefoundry_direct.engines.trtllm import TRTLLM
from kubefoundry_direct.engines.vllm import VLLM
from kubefoundry_sdk.spec import ModelDeploymentSpec

ENGINES: Final[Mapping[str, Engine]] = {
    "vllm": VLLM,
    "sglang": SGLANG,
    "trtllm": TRTLLM,
    "llamacpp": LLAMACPP,
}


def engine_of(spec: ModelDeploymentSpec) -> Engine:
    """Return the engine of a spec. Raise KeyError if `direct` cannot start it, which its capabilities exclude."""
    return ENGINES[spec.engine.type or ""]
