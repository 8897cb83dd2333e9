"""`engine.extraArgs`: the end of an engine's command line, and the flags in it.

A flag that KubeFoundry reads, or that another field sets, has one place, so it is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubefoundry_sdk._api.engine_args import FIELD_FLAGS, effective
from kubefoundry_sdk._api.flag_names import SIZES, dashed
from kubefoundry_sdk._api.structure import Problem

_FLAG: Final = re.compile(r"--?(?P<name>[A-Za-z][^=\s]*)")
"""The beginning of an entry that is a flag. A value such as -1 is none."""


def flags(engine: str | None, entries: Sequence[str]) -> dict[str, str]:
    """Return the flags among the entries: the canonical name with dashes, and the name as the entry has it.

    A value that begins with a dash and a letter counts as a flag, as engines read it.
    """
    found = [match["name"] for entry in entries if (match := _FLAG.match(entry))]
    return {dashed(next(iter(effective(engine, {dashed(name): ""})))): name for name in found}


def problems(spec: dict[str, Any]) -> Iterator[Problem]:
    """Yield entries without a flag, and flags that have another place. The spec has its defaults."""
    engine, entries = spec["engine"]["type"], spec["engine"].get("extraArgs") or []
    path = "spec.engine.extraArgs"
    if entries and not _FLAG.match(entries[0]):
        yield Problem(
            f"{path}[0]", "must be a flag, such as --lora-modules: entries before the first flag have none"
        )
    fields = {flag: field for field, names in FIELD_FLAGS[engine].items() for flag in names}
    args = {dashed(name): name for name in effective(engine, spec["engine"].get("args") or {})}
    for flag, name in flags(engine, entries).items():
        if flag in fields:
            yield Problem(path, f"has the flag {name}: set {fields[flag]} instead")
        elif flag in SIZES:
            yield Problem(path, f"has the flag {name}, by which GPUs are counted: set it in engine.args")
        elif flag in args:
            yield Problem(path, f"has the flag {name}, which is in engine.args, too: remove one")
