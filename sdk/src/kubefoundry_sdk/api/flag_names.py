"""Flags of engines that have several names, and the one that is used."""

from __future__ import annotations

from typing import Final

TENSOR: Final = "tensor-parallel-size"
PIPELINE: Final = "pipeline-parallel-size"
DATA: Final = "data-parallel-size"

SIZES: Final = (TENSOR, PIPELINE, DATA)

LONG: Final[dict[str, dict[str, str]]] = {
    "vllm": {
        "tp": TENSOR,
        "pp": PIPELINE,
        "dp": DATA,
        "dpn": "data-parallel-rank",
        "dpl": "data-parallel-size-local",
        "ep": "enable-expert-parallel",
        "q": "quantization",
    },
    "sglang": {"tp": TENSOR, "tp-size": TENSOR, "pp-size": PIPELINE, "dp": DATA, "dp-size": DATA},
    "trtllm": {"tp-size": TENSOR, "pp-size": PIPELINE},
    "llamacpp": {
        "hf": "hf-repo",
        "hfr": "hf-repo",
        "hff": "hf-file",
        "a": "alias",
        "c": "ctx-size",
        "m": "model",
        "t": "threads",
        "b": "batch-size",
        "cb": "cont-batching",
        "cmoe": "cpu-moe",
        "ctk": "cache-type-k",
        "ctv": "cache-type-v",
        "dev": "device",
        "fa": "flash-attn",
        "hft": "hf-token",
        "lv": "log-verbosity",
        "md": "model-draft",
        "mg": "main-gpu",
        "mm": "mmproj",
        "n": "predict",
        "n-gpu-layers": "gpu-layers",
        "n-predict": "predict",
        "ncmoe": "n-cpu-moe",
        "ngl": "gpu-layers",
        "nkvo": "no-kv-offload",
        "np": "parallel",
        "ot": "override-tensor",
        "s": "seed",
        "sm": "split-mode",
        "tb": "threads-batch",
        "to": "timeout",
        "ts": "tensor-split",
        "ub": "ubatch-size",
    },
}
"""For each engine the aliases of flags, and the name that is used. After two dashes vLLM and llama.cpp accept no
short names at all (vllm/engine/arg_utils.py; llama.cpp common/arg.cpp)."""
