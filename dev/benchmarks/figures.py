"""Measured figures, with the values that they are compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value.

    Attributes:
        name: Name of the row.
        value: The value.
        unit: Its unit, empty for a plain number.
        aim: The highest value that meets the aim; None if there is no aim.
        detail: Whether the value is a part of the figure above it. Only the terminal shows it.
    """

    name: str
    value: float
    unit: str
    aim: float | None = None
    detail: bool = False

    @property
    def met(self) -> bool | None:
        """Check whether the aim is met; None if there is no aim."""
        return None if self.aim is None else self.value <= self.aim


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the report. `method` describes the measurement in a sentence or two."""

    key: str
    title: str
    method: str
    figures: Sequence[Figure]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
