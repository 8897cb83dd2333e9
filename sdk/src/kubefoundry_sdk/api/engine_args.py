"""Entries of `engine.args`: one name of each flag, what repeats another field, and the GPUs asked for (contract §2).

CEL cannot say this readably (spellings of a flag, basename of the id), so it is in Python only: in the
validating webhook and in the reconcile-time check. Source of the flags: sources §4.1.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubefoundry_sdk.api.formats import FLAG, MEANINGS
from kubefoundry_sdk.api.structure import Problem

FIELD_FLAGS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "vllm": {
        "model.id": ("model",),
        "model.servedName": ("served-model-name",),
        "engine.contextLength": ("max-model-len",),
        "engine.trustRemoteCode": ("trust-remote-code",),
    },
    "sglang": {
        "model.id": ("model-path", "model"),
        "model.servedName": ("served-model-name",),
        "engine.contextLength": ("context-length",),
        "engine.trustRemoteCode": ("trust-remote-code",),
    },
    "trtllm": {
        "model.id": ("model-path", "model"),
        "model.servedName": ("served-model-name",),
        "engine.contextLength": ("max-seq-len",),
    },
    "llamacpp": {
        "model.id": ("hf-repo", "hf", "hfr"),
        "model.servedName": ("alias", "a"),
        "engine.contextLength": ("ctx-size", "c"),
    },
}
"""For each engine the flags, without dashes, in which a field of the spec ends."""

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
    "trtllm": {},
    "llamacpp": {
        "hf": "hf-repo",
        "hfr": "hf-repo",
        "hff": "hf-file",
        "a": "alias",
        "c": "ctx-size",
        "m": "model",
        "t": "threads",
        "b": "batch-size",
        "ub": "ubatch-size",
        "np": "parallel",
        "ngl": "gpu-layers",
        "fa": "flash-attn",
    },
}
"""Further names of flags, for each engine, and the one that is used. After two dashes vLLM and llama.cpp take no
short name at all (vllm/engine/arg_utils.py; llama.cpp common/arg.cpp)."""

NEGATABLE: Final = frozenset({"vllm", "llamacpp"})
"""Engines of which a switch X has the form no-X; for vLLM it is the same switch turned off."""

ODD: Final[dict[str, frozenset[str]]] = {
    "vllm": frozenset({"aggregate-engine-logging", "disable-log-stats", "headless"}),
    "sglang": frozenset(
        {
            "dcp-replicate-q-proj",
            "dllm-fdfo",
            "enable-tp-lm-head-all-to-all",
            "experts-shared-outer-loras",
            "lora-strict-loading",
        }
    ),
}
"""Switches unlike their engine's others: of vLLM without the form no-X, of SGLang with it (vLLM 0.18.0, SGLang
0.5.18; a test compares with what their parsers define)."""

DEPTH: Final = 32
"""Levels of a JSON value."""

_FLAG: Final = re.compile(FLAG)
_SIZE: Final = re.compile(r"[1-9][0-9]{0,5}")


class Parallel(NamedTuple):
    """How many GPUs one engine is split over, and by what."""

    tensor: int
    pipeline: int
    data: int

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline * self.data


def effective(engine: str | None, args: Mapping[str, str]) -> dict[str, str]:
    """The args by one name each: with dashes, long, a switch that is turned off as X: "false".

    TensorRT-LLM's stay as they are: without a dash they are keys of its configuration.
    """
    return dict(_effective(engine, name, value) for name, value in args.items())


def told(engine: str | None, args: Mapping[str, str]) -> dict[str, str]:
    """The args that a command line has: a switch that is off, and has no form no-X, is left out (contract §2)."""
    odd = ODD.get(engine or "", frozenset())
    return {
        name: value
        for name, value in args.items()
        if value != "false" or (engine in NEGATABLE) != (name.replace("_", "-") in odd)
    }


def parallel(engine: str | None, args: Mapping[str, str], gpus: int) -> Parallel:
    """The parallel sizes of a replica: as stated, and tensor parallelism over the GPUs that the others leave.

    Sizes that are no number from 1 up count as not stated; `problems` names them.
    """
    stated = _sizes(engine, args)
    pipeline = stated.get(PIPELINE, 1)
    data = stated.get(DATA, 1) if _splits_by_data(args) else 1
    return Parallel(stated.get(TENSOR, max(1, gpus // (pipeline * data))), pipeline, data)


def json_value(text: str) -> Any:
    """The JSON that an arg's value is. Raises ValueError where it is none, has numbers that JSON has not, or is
    nested more than `DEPTH` deep: what is made of it has to be written again."""
    level = deepest = 0
    for character in text:
        # brackets inside of texts count too: none that means something has so many
        level += (character in "{[") - (character in "}]")
        deepest = max(deepest, level)
    if deepest > DEPTH:
        raise ValueError(f"is nested more than {DEPTH} deep")
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def typed(text: str) -> Any:
    """The JSON value that an arg is, else its text; `""` is true, as it is for a flag."""
    if text == "":
        return True
    try:
        return json_value(text)
    except ValueError:
        return text


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is no number of JSON")
    return value


def states_tensor_parallelism(args: Mapping[str, str]) -> bool:
    return any(name.replace("_", "-") == TENSOR for name in args)


def problems(spec: dict[str, Any]) -> Iterator[Problem]:
    """Args that contradict a field or another arg or need more GPUs than there are, and names that are no flag.

    The spec has its defaults.
    """
    args: dict[str, str] = spec["engine"].get("args", {})
    malformed = [name for name in args if not _FLAG.fullmatch(name)]
    for name in malformed:
        yield Problem(f"spec.engine.args[{name}]", f"the key must be {MEANINGS[FLAG]}")
    yield from _contradictions(spec, {name: args[name] for name in args if name not in malformed})
    if not malformed:
        yield from _repeated(spec["engine"]["type"], args)
        yield from _too_many_gpus(spec, args)


def _contradictions(spec: dict[str, Any], args: Mapping[str, str]) -> Iterator[Problem]:
    engine = spec["engine"]["type"]
    fields = {flag: field for field, names in FIELD_FLAGS[engine].items() for flag in names}
    stated = _stated(spec)
    for name, said in args.items():
        path = f"spec.engine.args[{name}]"
        flag, value = _effective(engine, name, said)
        field = fields.get(flag.replace("_", "-"))
        wanted = stated.get(field) if field else None
        if wanted is not None and _meaning(value, wanted) != wanted:
            yield Problem(path, f'is "{said}" but {field} is "{wanted}": set only {field}')


def _repeated(engine: str, args: Mapping[str, str]) -> Iterator[Problem]:
    """Two spellings of one flag: which of them counts is anyone's guess."""
    first: dict[str, str] = {}
    for name, value in args.items():
        flag = _effective(engine, name, value)[0]
        flag = flag if engine == "trtllm" and flag.replace("_", "-") not in SIZES else flag.replace("_", "-")
        if flag in first:
            yield Problem(f"spec.engine.args[{name}]", f"is the same flag as {first[flag]}: remove one")
        first.setdefault(flag, name)


def _too_many_gpus(spec: dict[str, Any], args: Mapping[str, str]) -> Iterator[Problem]:
    engine = spec["engine"]["type"]
    if engine == "llamacpp":
        return
    wrong = [
        name
        for name, value in args.items()
        if _effective(engine, name, value)[0].replace("_", "-") in SIZES and not _SIZE.fullmatch(value)
    ]
    for name in wrong:
        yield Problem(f"spec.engine.args[{name}]", f'must be a whole number from 1 up, is "{args[name]}"')
    if wrong:
        return
    for field, gpus in _gpus(spec):
        found = parallel(engine, effective(engine, args), gpus)
        if gpus and found.gpus > gpus:
            sizes = f"tensor {found.tensor} × pipeline {found.pipeline} × data {found.data}"
            yield Problem(
                "spec.engine.args",
                f"parallel sizes need {found.gpus} GPUs a replica ({sizes}), but {field} is {gpus}: raise it, or "
                "lower the sizes",
            )


def _gpus(spec: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The GPUs of a replica, by the field that says so."""
    if spec["serving"]["mode"] == "aggregated":
        yield "resources.gpu.count", (spec["resources"].get("gpu") or {}).get("count", 0)
        return
    for role in ("prefill", "decode"):
        gpu = (spec["scaling"].get(role) or {}).get("gpu") or {}
        yield f"scaling.{role}.gpu.count", gpu.get("count", 0)


def _sizes(engine: str | None, args: Mapping[str, str]) -> dict[str, int]:
    named = {
        _effective(engine, name, value)[0].replace("_", "-"): value
        for name, value in args.items()
        if _SIZE.fullmatch(value)
    }
    return {flag: int(named[flag]) for flag in SIZES if flag in named}


def _splits_by_data(args: Mapping[str, str]) -> bool:
    """Whether data parallelism takes GPUs of its own in each replica.

    Not where SGLang spreads attention over the GPUs of one engine, and not where vLLM's ranks are placed by further
    data-parallel flags.
    """
    names = {name.replace("_", "-") for name in args}
    return "enable-dp-attention" not in names and not any(
        name.startswith("data-parallel-") and name != DATA for name in names
    )


def _effective(engine: str | None, name: str, value: str) -> tuple[str, str]:
    if engine is None or engine == "trtllm":
        return name, value
    flag = name.replace("_", "-")
    off = engine in NEGATABLE and flag.startswith("no-") and value in ("", "true", "false")
    if off:
        flag, value = flag.removeprefix("no-"), "" if value == "false" else "false"
    return LONG[engine].get(flag, flag), value


def _stated(spec: dict[str, Any]) -> dict[str, str | None]:
    """What each field says, as the text of a flag; None where the field leaves it to the engine."""
    model, engine = spec["model"], spec["engine"]
    on_hub = model["source"] == "huggingface"
    length = engine.get("contextLength")
    return {
        "model.id": model.get("id") or None,
        "model.servedName": (model.get("servedName") or model["id"].rsplit("/", 1)[-1]) if on_hub else None,
        "engine.contextLength": None if length is None else str(length),
        "engine.trustRemoteCode": "true" if engine["trustRemoteCode"] else "false",
    }


def _meaning(value: str, wanted: str) -> str:
    """A bare flag says true."""
    return "true" if value == "" and wanted in ("true", "false") else value
