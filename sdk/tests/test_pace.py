"""How often a status is written while its upstream does not settle, and which writes do not wait."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._cluster.rate import Bucket
from kubefoundry_sdk._provider.reconcile.pace import BURST, EVERY, can_wait


def status(ready: bool, generation: int = 3, refused: str = "", **fields: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready), "observedGeneration": generation}]
    if refused:
        conditions.append({"type": "ResourceCreated", "status": "False", "reason": refused})
    return {"phase": "Running", "conditions": conditions, **fields}


@given(st.lists(st.floats(0.0, 2.0), min_size=200, max_size=400))
def test_unsettled_status_has_a_rate(pauses: list[float]) -> None:
    bucket, now, sent = Bucket(BURST, EVERY), 0.0, 0
    for pause in pauses:
        now += pause
        if not bucket.wait(now):
            bucket.take()
            sent += 1

    assert sent <= BURST + now / EVERY + 1


def test_write_is_due_after_its_wait() -> None:
    bucket = Bucket(BURST, EVERY)
    for _ in range(BURST):
        assert bucket.wait(100.0) == 0
        bucket.take()

    assert bucket.wait(100.0) == EVERY
    assert bucket.wait(100.0 + EVERY) == 0


def test_quiet_status_is_written_at_once_again() -> None:
    bucket = Bucket(BURST, EVERY)
    for _ in range(2 * BURST):
        bucket.wait(100.0)
        bucket.take()

    later = 100.0 + BURST * EVERY
    for _ in range(BURST):
        assert bucket.wait(later) == 0
        bucket.take()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(status(True), status(True, message="x"), True, id="another message"),
        pytest.param(status(False), status(True), True, id="it serves"),
        pytest.param(status(True), status(False), False, id="it stops serving"),
        pytest.param(status(True, 3), status(True, 4), False, id="a newer generation"),
        pytest.param(status(True), status(True, refused="A"), False, id="an obstacle"),
        pytest.param(
            status(True, refused="A"), status(True, refused="A", message="x"), True, id="the same one"
        ),
        pytest.param(status(True, refused="A"), status(True, refused="B"), False, id="another obstacle"),
        pytest.param(status(True, refused="A"), status(True), True, id="no obstacle any more"),
        pytest.param({}, status(False), False, id="the first report"),
        pytest.param(status(True), {"conditions": []}, False, id="another provider reports"),
    ],
)
def test_status_that_misleads_does_not_wait(
    before: dict[str, Any], after: dict[str, Any], expected: bool
) -> None:
    assert can_wait(before, after) is expected
