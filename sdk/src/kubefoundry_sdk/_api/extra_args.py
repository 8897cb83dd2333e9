"""`engine.extraArgs`: the end of an engine's command line, and the flags in it.

A flag that KubeFoundry reads, or that another field sets, has one place, so it is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubefoundry_sdk._api.engine_args import FIELD_FLAGS, effective
from kubefoundry_sdk._api.flag_names import COUNTED, dashed, flag_problem
from kubefoundry_sdk._api.structure import Problem

_FLAG: Final = re.compile(r"--?(?P<name>[A-Za-z][^=\s]*)")
"""The beginning of an entry that is a flag. A value such as -1 is none."""

_LEVEL: Final = re.compile(r"O[0-9]")
"""`-O3` of vLLM: the flag and its value in one."""

_DATA_PARALLEL: Final = "data-parallel-"
"""The beginning of flags that belong to `COUNTED`."""


def flags(engine: str | None, entries: Sequence[str]) -> dict[str, str]:
    """Return the flags among the entries: the canonical name with dashes, and the flag as the entry has it.

    A value that begins with a dash and a letter counts as a flag, as engines read it.
    """
    found: dict[str, str] = {}
    for entry in entries:
        if match := _FLAG.match(entry):
            name = "O" if engine == "vllm" and _LEVEL.fullmatch(match["name"]) else match["name"]
            found[dashed(next(iter(effective(engine, {dashed(name): ""}))))] = match[0]
    return found


def reserved(names: Iterable[str], extra_flags: Mapping[str, str]) -> dict[str, str]:
    """Return the extra flags that mean a flag in `names`: the flag as written, and the name.

    vLLM and SGLang complete `--served` to `--served-model-name`.

    Args:
        names: Flags that have another place.
        extra_flags: What `flags` returns.
    """
    found: dict[str, str] = {}
    for flag, written in extra_flags.items():
        is_long = written.startswith("--")
        meant = [name for name in names if name == flag or (is_long and name.startswith(flag))]
        if meant:
            found[written] = min(meant)
    return found


def problems(spec: dict[str, Any]) -> Iterator[Problem]:
    """Yield entries without a flag, and flags that have another place. The spec has its defaults."""
    engine, entries = spec["engine"]["type"], spec["engine"].get("extraArgs") or []
    path = "spec.engine.extraArgs"
    if entries and not _FLAG.match(entries[0]):
        yield Problem(
            f"{path}[0]", "must be a flag, such as --lora-modules: entries before the first flag have none"
        )
    if "--" in entries:
        yield Problem(path, 'has the entry "--", after which engines read no flags: remove it')
    args = {dashed(name).partition(".")[0] for name in effective(engine, spec["engine"].get("args") or {})}
    for message in _misplaced(engine, flags(engine, entries), args):
        yield Problem(path, message)


def _misplaced(engine: str, found: Mapping[str, str], args: Container[str]) -> Iterator[str]:
    fields = {flag: field for field, names in FIELD_FLAGS[engine].items() for flag in names}
    of_fields, counted = reserved(fields, found), reserved(COUNTED, found)
    for flag, written in found.items():
        if name := of_fields.get(written):
            yield f"has the flag {written}: set {fields[name]} instead"
        elif written in counted or flag.startswith(_DATA_PARALLEL):
            yield f"has the flag {written}, by which GPUs are counted: set it in engine.args"
        elif flag.partition(".")[0] in args:
            yield f"has the flag {written}, which is in engine.args, too: remove one"
        if "." in flag and (problem := flag_problem(engine, flag)):
            yield f"has the flag {written}, which {problem}"
