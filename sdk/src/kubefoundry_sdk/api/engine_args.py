"""Entries of `engine.args` that repeat another field of the spec (contract §2).

CEL cannot say this readably (spellings of a flag, basename of the id), so it stands in Python only: in the
validating webhook and in the reconcile-time check. Source of the flags: 003 §15 and `facts/upstreams.md` §4.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

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

_FLAG: Final = re.compile(FLAG)


def problems(spec: dict[str, Any]) -> Iterator[Problem]:
    """Args that contradict a field, and names that are no flag. The spec has its defaults."""
    args: dict[str, str] = spec["engine"].get("args", {})
    flags = FIELD_FLAGS[spec["engine"]["type"]]
    fields = {flag: field for field, names in flags.items() for flag in names}
    stated = _stated(spec)
    for name, value in args.items():
        path = f"spec.engine.args[{name}]"
        if not _FLAG.fullmatch(name):
            yield Problem(path, f"the key must be {MEANINGS[FLAG]}")
            continue
        field = fields.get(name.replace("_", "-"))
        wanted = stated.get(field) if field else None
        if wanted is not None and _meaning(value, wanted) != wanted:
            yield Problem(path, f'is "{value}" but {field} is "{wanted}": set only {field}')


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
