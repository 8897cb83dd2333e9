"""Read the recorded runs of the real upstream operators in ../shared/facts/timelines. Each line is a change."""

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
    """The state of an object from `time` on.

    Attributes:
        line: Number of the line.
        time: Seconds from the start of the recording.
        event: ADDED, MODIFIED, DELETED, or LIST for an object that existed before.
        kind: The plural.
        name: Name of the object.
        generation: Its generation.
        finalizers: Its finalizers.
        owners: Its owners as `Kind/name`, with ` ctrl` for the controller.
        deleting: Whether it has a deletionTimestamp.
        status: Its status.
        note: A note about manual changes since the line before, None in most lines.
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
    """Return every recording by name. Without ../shared there is none."""
    return sorted(FOLDER.glob("*.jsonl"))


def states(recording: Path | str, kind: str | None = None) -> Iterator[State]:
    """Yield the states of a recording in order, and only of one kind if it is given.

    Notes of skipped lines are added to the next state.

    Args:
        recording: A path, or the name of a recording without `.jsonl`.
        kind: The plural of a kind.
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
