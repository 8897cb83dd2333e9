"""docs/cli-transcript.md from what the commands printed, with what differs from run to run replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.transcript.days import RENDERED, Day

DOCUMENT: Final = Path(__file__).resolve().parents[3] / "docs" / "cli-transcript.md"

HEADER = """\
# What the commands print

Written by `make transcript`, which runs these commands; `tests/integration/commands/test_transcript.py` compares.
Times, ids and ports are replaced. A long output is cut (`…`). `[1]` is an exit code; without it, it is 0.
"""

WHOLE: Final = ("doctor", "explain", "controller install --dry-run")
"""Commands whose output is never cut."""

VARIES: Final = (
    (r"https://127\.0\.0\.1:\d+", "https://api.example.com:6443"),
    (r"http://127\.0\.0\.1:\d+", "http://localhost:3000"),
    (r"\?code=[\w-]+", "?code=CODE"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UID"),
    (r"127\.0\.0\.1:\d+", "api.example.com:6443"),
    (r"\('127\.0\.0\.1', \d+\)", "('192.0.2.1', 6443)"),
    (r"valid for \d+ days", "valid for 365 days"),
    (r"held by [^\s)]+", "held by POD"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "2026-01-01T00:00:00Z"),
    (
        r"\b\d+ ModelDeployments? needs? ([^:]+): .*?\. Add",
        r"2 ModelDeployments need \1: team-a/llama, team-b/qwen. Add",
    ),
    (r"v1\.(?:26|3\d)\.\d+\S*", "v1.34.0"),
)
"""Regular expressions, in order, and what takes their place."""


@dataclass(frozen=True, slots=True)
class Printed:
    """line: with the program's name."""

    line: str
    code: int
    text: str


def normalised(text: str, names: Mapping[str, str]) -> str:
    """The same in every run. names: of this run, and what takes their place."""
    for name, instead in names.items():
        text = text.replace(name, instead)
    for pattern, instead in VARIES:
        text = re.sub(pattern, instead, text)
    # a column keeps its width
    return re.sub(r"\b\d+(?:\.\d+)?(?:ms|s|m)\b *", lambda found: "1s".ljust(len(found[0])), text)


def document(days: Sequence[tuple[Day, Sequence[Printed]]]) -> str:
    """The page."""
    parts = [HEADER]
    for day, printed in days:
        parts += [f"## {day.title}\n\n{day.says}\n", "```console", *(_shown(one) for one in printed), "```\n"]
    return "\n".join(parts).rstrip() + "\n"


def _shown(one: Printed) -> str:
    lines = [re.sub(r" {3,}$", "", line).rstrip() for line in one.text.rstrip("\n").split("\n")]
    if len(lines) > RENDERED and not one.line.removeprefix("kubefoundry ").startswith(WHOLE):
        lines = [*lines[:RENDERED], "…", lines[-1]]
    code = [f"[{one.code}]"] if one.code else []
    return "\n".join([f"$ {one.line}", *lines, *code, ""])
