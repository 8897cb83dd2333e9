"""The API server in memory answers random requests as a real one: codes, reasons, objects and managed fields."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from support.differential.comparison import first_difference
from support.differential.ground import both

pytestmark = [
    pytest.mark.integration,
    pytest.mark.needs_kubernetes("1.36", "the server in memory, which answers as 1.36 does"),
]

SEQUENCES: Final = 60
"""About ten seconds; `make differential` runs more."""


def test_server_in_memory_answers_as_real_one(tmp_path: Path) -> None:
    with both(tmp_path) as (real, memory):
        found = [first_difference(seed, real, memory)[1] for seed in range(SEQUENCES)]

    assert [str(difference) for difference in found if difference] == []
