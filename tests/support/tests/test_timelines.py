"""Recorded runs are read whole."""

from __future__ import annotations

import json
from pathlib import Path

from support.timelines import recordings, states
from support.upstream import requires_shared


def test_notes_go_to_the_next_state(tmp_path: Path) -> None:
    recording = tmp_path / "r.jsonl"
    lines = [
        {"t": 0, "ev": "ADDED", "kind": "workspaces", "name": "w", "gen": 1},
        {"t": 1, "note": "scaled"},
        {"t": 2, "ev": "ADDED", "kind": "pods", "name": "p", "owner": ["StatefulSet/w ctrl"]},
        {"t": 3, "ev": "MODIFIED", "kind": "workspaces", "name": "w", "gen": 2, "status": {"state": "Ready"}},
    ]
    recording.write_text("\n".join(json.dumps(line) for line in lines))

    first, second = states(recording, "workspaces")

    assert (first.line, first.generation, first.note, dict(first.status)) == (1, 1, None, {})
    assert (second.line, second.generation, second.note) == (4, 2, "scaled")
    assert second.status["state"] == "Ready"


@requires_shared
def test_every_recording_is_read() -> None:
    assert recordings()
    for recording in recordings():
        assert sum(1 for _ in states(recording)) > 10, recording.name
