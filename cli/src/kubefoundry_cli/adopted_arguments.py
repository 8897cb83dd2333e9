"""The engine's command line of an object that becomes a ModelDeployment: the fields that may have rendered it.

Providers read each flag into a field of the spec or into `engine.args`. The same flags may also come from
`engine.args` instead of a field, or from `engine.extraArgs`, which keeps the order and the form `--flag=value`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from kubefoundry_sdk._api.engine_args import FIELD_FLAGS
from kubefoundry_sdk._api.flag_names import dashed
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import part

_FLAG: Final = re.compile(r"--?(?P<name>[A-Za-z][^=\s]*)")


def forms(spec: Object, live: Object) -> Iterator[Object]:
    """Yield each other spec with the same flags. Specs with fewer entries of `engine.extraArgs` come first.

    Args:
        spec: The spec as a provider read it.
        live: The upstream object.
    """
    seen = [spec]
    for extra in [None, *_endings(spec, live)]:
        for other in _with_arguments(spec if extra is None else _with_extra(spec, extra)):
            if other not in seen:
                seen.append(other)
                yield other


def _with_arguments(spec: Object) -> Iterator[Object]:
    """Yield the spec, also with engine settings moved to `engine.args`, where their flags have another position.

    `contextLength` has no default and is removed. A true `trustRemoteCode` stays: its default would contradict the
    argument.
    """
    engine = spec.get("engine") or {}
    flags = FIELD_FLAGS.get(str(engine.get("type")), {})
    stated = [
        field
        for field in ("contextLength", "trustRemoteCode")
        if field in engine and f"engine.{field}" in flags
    ]
    for number in range(len(stated) + 1):
        for fields in combinations(stated, number):
            yield {**spec, "engine": _with_moved(engine, fields, flags)}


def _with_moved(engine: Object, fields: Sequence[str], flags: Mapping[str, Sequence[str]]) -> Object:
    """Return the engine with these settings as flags in `args`."""
    kept = {key: value for key, value in engine.items() if key not in fields or value is True}
    moved = {
        flags[f"engine.{field}"][0]: "" if engine[field] is True else str(engine[field]) for field in fields
    }
    args = {**(engine.get("args") or {}), **moved}
    return {**kept, **({"args": args} if args else {})}


def _with_extra(spec: Object, extra: list[str]) -> Object:
    """Return the spec with these entries of `engine.extraArgs`, and without their flags in `engine.args`."""
    engine = dict(spec["engine"])
    names = {dashed(match["name"]) for entry in extra if (match := _FLAG.match(entry))}
    args = {
        name: value for name, value in (engine.pop("args", None) or {}).items() if dashed(name) not in names
    }
    return {**spec, "engine": {**engine, **({"args": args} if args else {}), "extraArgs": extra}}


def _endings(spec: Object, live: Object) -> Iterator[list[str]]:
    """Yield the ends of each command line, the shortest first, without flags that providers add themselves."""
    engine = part(spec, "engine")
    args = {dashed(name) for name in part(engine, "args")}
    stated = engine.get("extraArgs") or []
    for command_line in _command_lines(live):
        ending: list[str] = []
        for name, entries in reversed(list(_flags(command_line))):
            if dashed(name) in args or any(entry in stated for entry in entries):
                ending = [*entries, *ending]
                yield ending


def _flags(command_line: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each flag, with its entries: the flag, and its values."""
    starts = [
        (place, match["name"]) for place, entry in enumerate(command_line) if (match := _FLAG.match(entry))
    ]
    ends = [place for place, _ in starts[1:]] + [len(command_line)]
    for (start, name), end in zip(starts, ends, strict=True):
        yield name, command_line[start:end]


def _command_lines(live: Any) -> Iterator[list[str]]:
    """Yield the `args` of each container, as the kubelet expands them."""
    if isinstance(live, list):
        for item in live:
            yield from _command_lines(item)
    for key, child in part(live).items():
        if key == "args" and isinstance(child, list):
            yield [str(entry).replace("$$", "$") for entry in child]
        else:
            yield from _command_lines(child)
