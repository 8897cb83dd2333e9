"""The points that are demanded, and what a run of tests shows of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from behaviours.outcomes import Told

ROOT: Final = Path(__file__).resolve().parents[2]
LIST: Final = ROOT / "llamastack" / "acceptance.txt"


REAL: Final = frozenset(
    {"FR-026", "SC-007", "SC-008", "NFR-005", *(f"PF-{number:02}" for number in range(1, 11))}
    | {f"HP-{number}" for number in (1, 2, 3, 4, 5, 6, 7, 9)}
)
"""Points that a stand-in of a server cannot show: they need a test where pods really run."""
_PODS: Final = "tests/pods/"


@dataclass(frozen=True, slots=True)
class Verdict:
    """lines: one a point, then what is wrong besides, then the number of points that are shown."""

    lines: list[str]
    holds: bool


def points(text: str) -> dict[str, str]:
    """Id and words of each point, in the order of the list."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: says for name, _, says in (line.partition(" ") for line in lines)}


def verdict(demanded: Mapping[str, str], reported: Iterable[Told]) -> Verdict:
    """A point is shown by a test that was run and passed; a test that failed, or names no point, spoils it all."""
    known = list(reported)
    shown = {name: [one for one in known if name in one.ids] for name in demanded}
    lines = [f"{name:8} {says}: {_numbers(shown[name])}" for name, says in demanded.items()]
    failed = [f"FAILED {one.test}" for one in known if one.outcome == "failed"]
    strange = [
        f"UNKNOWN ID {name} of {one.test}" for one in known for name in one.ids if name not in demanded
    ]
    unreal = [name for name, tests in shown.items() if name in REAL and not _really(tests)]
    strange += [f"NOT SHOWN on a real server: {name}" for name in unreal]
    number = sum(
        name not in unreal and any(one.outcome == "passed" for one in tests) for name, tests in shown.items()
    )
    lines += [*failed, *strange, f"{number} of {len(demanded)} ids shown"]
    return Verdict(lines, holds=number == len(demanded) and not failed and not strange)


def _really(tests: list[Told]) -> bool:
    return any(one.outcome == "passed" and _PODS in one.test for one in tests)


def _numbers(tests: list[Told]) -> str:
    found = {
        outcome: sum(one.outcome == outcome for one in tests) for outcome in ("passed", "failed", "skipped")
    }
    counted = [f"{number} {outcome}" for outcome, number in found.items() if number]
    return ("" if found["passed"] else "NOT SHOWN, ") + (", ".join(counted) or "no test")
