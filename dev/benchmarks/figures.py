"""A measured figure, and what it is compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """aim: the value is to be at most that, None where nothing is aimed at.

    peer: what the Go implementation of the same design needed (another day and machine), empty where unknown.
    """

    name: str
    value: float
    unit: str
    aim: float | None = None
    peer: str = ""

    @property
    def met(self) -> bool | None:
        return None if self.aim is None else self.value <= self.aim


@dataclass(frozen=True, slots=True)
class Section:
    """method: how it was measured, in a sentence or two."""

    key: str
    title: str
    method: str
    figures: Sequence[Figure]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of them do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
