"""Flags of engines that have several names, and the canonical name of each."""

from __future__ import annotations

from typing import Final

TENSOR: Final = "tensor-parallel-size"
PIPELINE: Final = "pipeline-parallel-size"
DATA: Final = "data-parallel-size"

SIZES: Final = (TENSOR, PIPELINE, DATA)

COUNTED: Final = (*SIZES, "enable-dp-attention", "nnodes", "prefill-context-parallel-size")
"""Flags on which the number of GPUs and the derived sizes depend (`engine_args.parallel`). All flags that begin with
`data-parallel-` belong to them."""

COMPLETED: Final = frozenset({"vllm", "sglang"})
"""Engines that complete an abbreviated flag: Python's argparse reads `--served` as `--served-model-name`."""

LONG: Final[dict[str, dict[str, str]]] = {
    "vllm": {
        "tp": TENSOR,
        "pp": PIPELINE,
        "dp": DATA,
        "dpa": "data-parallel-address",
        "dpb": "data-parallel-backend",
        "dpe": "data-parallel-external-lb",
        "dph": "data-parallel-hybrid-lb",
        "dpl": "data-parallel-size-local",
        "dpn": "data-parallel-rank",
        "dpp": "data-parallel-rpc-port",
        "dpr": "data-parallel-start-rank",
        "dcp": "decode-context-parallel-size",
        "pcp": "prefill-context-parallel-size",
        "ep": "enable-expert-parallel",
        "asc": "api-server-count",
        "ac": "attention-config",
        "cc": "compilation-config",
        "n": "nnodes",
        "q": "quantization",
        "r": "node-rank",
        # not in its parser's table: it turns -O3 into this (vllm/utils/argparse_utils.py)
        "O": "optimization-level",
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
"""For each engine the aliases of flags, and the canonical name. After two dashes vLLM and llama.cpp accept no short
names at all (vllm/engine/arg_utils.py; llama.cpp common/arg.cpp). A test compares vLLM's with its parser.
TensorRT-LLM's server has no short flags (tensorrt_llm/commands/serve.py)."""

SHORT_LONG: Final[dict[str, frozenset[str]]] = {"sglang": frozenset({"ep"})}
"""For each engine the names of at most `SHORT` characters that it accepts after two dashes."""

SHORT: Final = 2
"""The most characters of a short name."""


def dashed(flag: str) -> str:
    """Return the flag with dashes. After the first dot, vLLM reads a path of keys, whose underscores are kept."""
    name, dot, keys = flag.partition(".")
    return name.replace("_", "-") + dot + keys


def is_dotted(flag: str) -> bool:
    """Check whether the flag sets one key of a flag that takes JSON, as vLLM's do."""
    return "." in flag


def flag_problem(engine: str, flag: str) -> str:
    """Return why the engine has no such flag, or an empty text.

    Reasons are a dot, and a short name whose long name is unknown here.
    """
    name, dot, keys = flag.partition(".")
    known_flags = {**LONG[engine], **dict.fromkeys(SHORT_LONG.get(engine, ()))}
    if len(name) <= SHORT and name not in known_flags:
        # The same text for every engine: if no engine has the flag, the spec is refused even without an engine.
        return "is not a short flag that is known here: write the long flag"
    if dot and engine != "vllm":
        return f"has a dot, and only vllm has such flags: set {name} to a JSON value"
    if dot and not all(keys.split(".")):
        return "has an empty key between dots or at its end: name the key"
    return ""
