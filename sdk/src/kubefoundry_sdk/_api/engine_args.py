"""Entries of `engine.args`: canonical flag names, conflicts with other fields, and the GPUs that they need.

Source of the rules: contract §2. CEL cannot express them readably (spellings of a flag, basename of the id), so they
are in Python only: in the validating webhook and in the reconcile-time check. Source of the flags: sources §4.1.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubefoundry_sdk._api.flag_names import (
    COMPLETED,
    COUNTED,
    DATA,
    LONG,
    PIPELINE,
    SHORT,
    SIZES,
    TENSOR,
    dashed,
    flag_problem,
    is_dotted,
)
from kubefoundry_sdk._api.formats import FLAG, MEANINGS
from kubefoundry_sdk._api.structure import Problem

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
"""For each engine the flags, without dashes, that a field of the spec sets."""

ENGINES: Final = tuple(FIELD_FLAGS)
"""All engines, in the order in which one is selected for a spec without an engine (contract §5)."""

NEGATABLE: Final = frozenset({"vllm", "llamacpp"})
"""Engines in which a switch X has the form no-X; for vLLM that is the same switch turned off."""

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
"""Switches that are exceptions in their engine: vLLM's have no form no-X, SGLang's have one (vLLM 0.18.0, SGLang
0.5.18; a test compares with what their parsers define)."""

ON_OFF: Final[dict[str, frozenset[str]]] = {
    "llamacpp": frozenset({"fit", "flash-attn", "log-colors", "reasoning"})
}
"""Options that take `on` or `off`. Without a value, the engine would read the next entry of the command line as the
value (llama.cpp common/arg.cpp)."""

DEPTH: Final = 32
"""Levels of nesting in a JSON value."""

LONGEST_NUMBER: Final = 308
"""Characters of an integer in a JSON value: the largest double has 309 digits."""

_ON_OFF: Final = {"": "on", "true": "on", "false": "off"}

_FLAG: Final = re.compile(FLAG)
_SIZE: Final = re.compile(r"[1-9][0-9]{0,5}")


class Parallel(NamedTuple):
    """How one engine is split over GPUs: the sizes of tensor, pipeline and data parallelism."""

    tensor: int
    pipeline: int
    data: int

    @property
    def gpus(self) -> int:
        """Return the number of GPUs that the engine needs."""
        return self.tensor * self.pipeline * self.data


class StatedSizes(NamedTuple):
    """The parallel sizes that `engine.args` set. A size that they do not set is None."""

    tensor: int | None
    pipeline: int | None
    data: int | None


def effective(engine: str | None, args: Mapping[str, str]) -> dict[str, str]:
    """Return the args by canonical name: the long name, with dashes. A switch that is off becomes X: "false".

    TensorRT-LLM's args keep their underscores and values: a name without a dash is a key of its configuration.
    """
    return dict(_effective(engine, name, value) for name, value in args.items())


def for_command_line(engine: str | None, args: Mapping[str, str]) -> dict[str, str]:
    """Return the args for a command line (contract §2).

    Switches that are off and have no form no-X are left out. Options that take `on` or `off` get that value.
    """
    odd, with_value = (flags.get(engine or "", frozenset()) for flags in (ODD, ON_OFF))
    return {
        name: _ON_OFF.get(value, value) if dashed(name) in with_value else value
        for name, value in args.items()
        if value != "false" or (engine in NEGATABLE) != (dashed(name) in odd)
    }


def parallel(engine: str | None, args: Mapping[str, str], gpus: int, *, nodes: int = 1) -> Parallel:
    """Return the parallel sizes of a replica.

    A data parallel size that the args do not set is 1. A pipeline size that they do not set is the number of nodes
    that one data parallel rank spans, so tensor parallelism stays within a node; it is 1 if the stated sizes leave no
    GPUs for that. The tensor size uses the GPUs that the other sizes leave. A size that is not a number of at least 1
    counts as not set. The validation of the spec reports it.

    Args:
        engine: The engine, or None.
        args: `engine.args`.
        gpus: The GPUs of the whole replica, on all its nodes.
        nodes: The number of nodes that the replica spans.
    """
    stated = stated_sizes(engine, args)
    data = stated.data or 1 if _splits_by_data(args) else 1
    pipeline = stated.pipeline or nodes // math.gcd(nodes, data)
    if stated.pipeline is None and (stated.tensor or 1) * pipeline * data > gpus:
        pipeline = 1
    return Parallel(stated.tensor or max(1, gpus // (pipeline * data)), pipeline, data)


def stated_sizes(engine: str | None, args: Mapping[str, str]) -> StatedSizes:
    """Return the parallel sizes that `engine.args` set under any of their names.

    Args:
        engine: The engine, or None.
        args: `engine.args`.
    """
    named = {dashed(_effective(engine, name, value)[0]): value for name, value in args.items()}
    sizes = {flag: int(value) for flag, value in named.items() if flag in SIZES and _SIZE.fullmatch(value)}
    return StatedSizes(sizes.get(TENSOR), sizes.get(PIPELINE), sizes.get(DATA))


def json_value(text: str) -> Any:
    """Return an arg's value, parsed as JSON.

    Raises:
        ValueError: The text is not JSON, has numbers that JSON lacks or half a surrogate pair, or is nested more
            than `DEPTH` deep. The result has to be serialized again.
    """
    level = deepest = 0
    for character in text:
        # brackets inside strings count, too: no sensible value has that many
        level += (character in "{[") - (character in "}]")
        deepest = max(deepest, level)
    if deepest > DEPTH:
        raise ValueError(f"is nested more than {DEPTH} deep")
    value = json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=_integer)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def typed(text: str) -> Any:
    """Return an arg's JSON value, else its text; `""` is true, as for a flag."""
    if text == "":
        return True
    try:
        return json_value(text)
    except ValueError:
        return text


def _integer(number: str) -> int:
    if len(number) > LONGEST_NUMBER:
        raise ValueError(f"has a number of more than {LONGEST_NUMBER} digits")
    return int(number)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a JSON number")
    return value


def states_tensor_parallelism(args: Mapping[str, str]) -> bool:
    """Check whether the args set the tensor parallel size."""
    return any(dashed(name) == TENSOR for name in args)


def problems(spec: dict[str, Any]) -> Iterator[Problem]:
    """Yield args that contradict a field or another arg, need too many GPUs, or are no flag.

    The spec has its defaults.
    """
    args: dict[str, str] = spec["engine"].get("args", {})
    malformed = [name for name in args if not _FLAG.fullmatch(name)]
    for name in malformed:
        yield Problem(f"spec.engine.args[{name}]", f"the key must be {MEANINGS[FLAG]}")
    yield from _contradictions(spec, {name: args[name] for name in args if name not in malformed})
    if not malformed:
        for name in args:
            if problem := flag_problem(spec["engine"]["type"], name):
                yield Problem(f"spec.engine.args[{name}]", problem)
        yield from _abbreviated(spec["engine"]["type"], args)
        yield from _repeated(spec["engine"]["type"], args)
        yield from _too_many_gpus(spec, args)


def _contradictions(spec: dict[str, Any], args: Mapping[str, str]) -> Iterator[Problem]:
    engine = spec["engine"]["type"]
    fields = {flag: field for field, names in FIELD_FLAGS[engine].items() for flag in names}
    stated = _stated(spec)
    for name, text in args.items():
        path = f"spec.engine.args[{name}]"
        flag, value = _effective(engine, name, text)
        field = fields.get(dashed(flag))
        expected = stated.get(field) if field else None
        if expected is not None and _meaning(value, expected) != expected:
            yield Problem(path, f'is "{text}" but {field} is "{expected}": set only {field}')


def _abbreviated(engine: str, args: Mapping[str, str]) -> Iterator[Problem]:
    """Yield flags that the engine completes to one that a field sets, or by which GPUs are counted."""
    if engine not in COMPLETED:
        return
    names = {*COUNTED, *(flag for flags in FIELD_FLAGS[engine].values() for flag in flags)}
    for name, value in args.items():
        flag = dashed(_effective(engine, name, value)[0]).partition(".")[0]
        whole = min((full for full in names if full.startswith(flag)), default=None)
        if whole and flag not in names and len(flag) > SHORT:
            yield Problem(f"spec.engine.args[{name}]", f"is an abbreviation of {whole}: write the whole name")


def _repeated(engine: str, args: Mapping[str, str]) -> Iterator[Problem]:
    """Yield two spellings of one flag, because the engine may use either of them."""
    first: dict[str, str] = {}
    for name, value in args.items():
        flag = _effective(engine, name, value)[0]
        flag = flag if engine == "trtllm" and dashed(flag) not in SIZES else dashed(flag)
        if flag in first:
            yield Problem(f"spec.engine.args[{name}]", f"is the same flag as {first[flag]}: remove one")
        first.setdefault(flag, name)
    for flag, name in first.items():
        whole = flag.partition(".")[0]
        if is_dotted(flag) and whole in first:
            yield Problem(f"spec.engine.args[{name}]", f"is a part of {first[whole]}: set only one of them")


def _too_many_gpus(spec: dict[str, Any], args: Mapping[str, str]) -> Iterator[Problem]:
    engine = spec["engine"]["type"]
    if engine == "llamacpp":
        return
    wrong = [
        name
        for name, value in args.items()
        if dashed(_effective(engine, name, value)[0]) in SIZES and not _SIZE.fullmatch(value)
    ]
    for name in wrong:
        yield Problem(f"spec.engine.args[{name}]", f'must be an integer from 1 to 999999, not "{args[name]}"')
    if wrong:
        return
    for field, gpus in _gpus(spec):
        split = parallel(engine, effective(engine, args), gpus)
        if gpus and split.gpus > gpus:
            sizes = f"tensor {split.tensor} × pipeline {split.pipeline} × data {split.data}"
            yield Problem(
                "spec.engine.args",
                f"parallel sizes need {split.gpus} GPUs a replica ({sizes}), but {field} is {gpus}: raise it, or "
                "lower the sizes",
            )


def _gpus(spec: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the GPUs of a replica, with the field that sets them."""
    if spec["serving"]["mode"] == "aggregated":
        yield "resources.gpu.count", (spec["resources"].get("gpu") or {}).get("count", 0)
        return
    for role in ("prefill", "decode"):
        gpu = (spec["scaling"].get(role) or {}).get("gpu") or {}
        yield f"scaling.{role}.gpu.count", gpu.get("count", 0)


def _splits_by_data(args: Mapping[str, str]) -> bool:
    """Check whether data parallelism needs its own GPUs in each replica.

    It does not if SGLang spreads attention over the GPUs of one engine, or if further data-parallel flags place
    vLLM's ranks.
    """
    names = {dashed(name) for name in args}
    return "enable-dp-attention" not in names and not any(
        name.startswith("data-parallel-") and name != DATA for name in names
    )


def _effective(engine: str | None, name: str, value: str) -> tuple[str, str]:
    if engine is None or engine == "trtllm":
        return LONG["trtllm"].get(name, name) if engine else name, value
    flag = dashed(name)
    if is_dotted(flag):
        # a dotted flag always gets a value: vLLM would read the next entry of the command line as the value
        first, _, keys = flag.partition(".")
        return f"{LONG[engine].get(first, first)}.{keys}", value or "true"
    off = engine in NEGATABLE and flag.startswith("no-") and value in ("", "true", "false")
    if off:
        flag, value = flag.removeprefix("no-"), "" if value == "false" else "false"
    return LONG[engine].get(flag, flag), value


def _stated(spec: dict[str, Any]) -> dict[str, str | None]:
    """Return the value that each field sets, as the text of a flag; None if the field leaves it to the engine."""
    model, engine = spec["model"], spec["engine"]
    on_hub = model["source"] == "huggingface"
    length = engine.get("contextLength")
    return {
        "model.id": model.get("id") or None,
        "model.servedName": (model.get("servedName") or model["id"].rsplit("/", 1)[-1]) if on_hub else None,
        "engine.contextLength": None if length is None else str(length),
        "engine.trustRemoteCode": "true" if engine["trustRemoteCode"] else "false",
    }


def _meaning(value: str, expected: str) -> str:
    """Return the value, or "true" for a bare flag if a boolean is expected."""
    return "true" if value == "" and expected in ("true", "false") else value
