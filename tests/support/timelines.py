"""The recorded runs of the real upstream operators in ../shared/facts/timelines: a line a change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from support.upstream import SHARED

FOLDER: Final = SHARED / "facts" / "timelines"
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class State:
    """An object as it stood from `time` on (seconds from the start of the recording).

    event: ADDED, MODIFIED, DELETED, or LIST for what was there before. kind: the plural. owners: `Kind/name`,
    with ` ctrl` for the controller. note: what was done by hand since the line before (None mostly).
    """

    line: int
    time: float
    event: str
    kind: str
    name: str
    generation: int | None
    finalizers: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    deleting: bool = False
    status: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    note: str | None = None


def recordings() -> list[Path]:
    """Every recording, by name; empty where ../shared is missing."""
    return sorted(FOLDER.glob("*.jsonl"))


def states(recording: Path | str, kind: str | None = None) -> Iterator[State]:
    """The states of a recording (a path, or its name without `.jsonl`), of one kind where given, in order.

    Notes of lines that are left out go to the next state of that kind.
    """
    path = recording if isinstance(recording, Path) else FOLDER / f"{recording}.jsonl"
    notes: list[str] = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        entry = json.loads(text)
        if "note" in entry:
            notes.append(entry["note"])
        elif "ev" in entry and kind in (None, entry["kind"]):
            yield State(
                line=number,
                time=entry["t"],
                event=entry["ev"],
                kind=entry["kind"],
                name=entry["name"],
                generation=entry.get("gen"),
                finalizers=tuple(entry.get("fin") or ()),
                owners=tuple(entry.get("owner") or ()),
                deleting=entry.get("deleting", False),
                status=entry.get("status") or NOTHING,
                note="; ".join(notes) or None,
            )
            notes.clear()
