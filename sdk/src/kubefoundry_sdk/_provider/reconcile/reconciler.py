"""One reconcile of a ModelDeployment by its provider: the steps of contract §4, in this order.

`make docs` writes the list of the contract from the docstrings of the steps.
"""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk._cluster.errors import Unreachable
from kubefoundry_sdk._provider.reconcile import closing, guards, write_errors, writes
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.turn import End, Step, Turn
from kubefoundry_sdk._runtime.store import Key

GUARDS: Final[tuple[Step, ...]] = (
    guards.forget_missing,
    guards.wait_until_listed,
    guards.clean_up,
    guards.keep_finalizer,
    guards.stop_if_paused,
    guards.release_deployment,
    guards.wait_for_retry,
)
"""The steps before the writes. An error in one of them ends the reconcile, and the queue retries it."""

WRITES: Final[tuple[Step, ...]] = (
    writes.require_validation,
    writes.check_compatibility,
    writes.require_crd,
    writes.render,
    writes.check_ownership,
    writes.plan_changes,
    writes.try_dry_run,
    writes.wait_after_refusal,
    writes.take_over,
    writes.add_finalizer,
    writes.start_recreation,
    writes.apply_plan,
)
"""The steps that write. An error in one of them skips the rest of these steps, and is reported."""

CLOSING: Final[tuple[Step, ...]] = (closing.observe, closing.write_status)
"""The steps after the writes, also after an error."""

STEPS: Final = (*GUARDS, *WRITES, *CLOSING)
"""All steps. The position of a step is its number in the contract."""


async def reconcile(context: Context, key: Key) -> float | None:
    """Bring the upstream object and our status fields up to date.

    Returns:
        Seconds until the next reconcile is due without an event, or None.

    Raises:
        ApiError, Unreachable: The status could not be written.
    """
    turn = Turn(context, key)
    end = await _run(GUARDS, turn) or await _write(turn)
    turn.retry_in(end.retry)
    if not end.reports:
        return turn.retry
    last = await _run(CLOSING, turn)
    return last.retry if last else turn.retry


async def _write(turn: Turn) -> End:
    try:
        end = await _run(WRITES, turn)
    except Unreachable:
        # Without the API server, nothing can be reported either.
        raise
    except Exception as error:
        return write_errors.end_of(turn, error)
    turn.memory.failures.reset()
    return end or End()


async def _run(steps: tuple[Step, ...], turn: Turn) -> End | None:
    """Take the steps up to the first that ends the sequence."""
    for step in steps:
        if end := await step(turn):
            return end
    return None
