"""Keeps a serving model Running while its upstream does not report for a moment whether the model serves.

The Dynamo operator 1.0 begins each rolling update with a status without counts of the workers, for 0.1 to 0.3 s. The
old workers serve meanwhile, so the endpoint must not be withdrawn.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kubefoundry_sdk._provider.contract import Observation

PATIENCE: Final = 5.0
"""Seconds: several times the longest measured duration of such a status, under load."""


class Steadiness:
    """Remember the last observation of one upstream object at which it served."""

    def __init__(self) -> None:
        self._serving: tuple[str, Observation] | None = None
        self._since: float | None = None

    def keep(self, uid: str, observation: Observation, now: float) -> tuple[Observation, float | None]:
        """Return the observation to report, and the seconds until an unclear observation is reported as it is.

        Args:
            uid: The uid of the upstream object.
            observation: The current observation of the provider.
            now: Monotonic seconds.
        """
        if observation.phase == "Running" or not observation.unclear:
            self._serving = (uid, observation) if observation.phase == "Running" else None
            self._since = None
            return observation, None
        if self._serving is None or self._serving[0] != uid:
            return observation, None
        if self._since is None:
            self._since = now
        left = PATIENCE - (now - self._since)
        if left <= 0:
            return observation, None
        return replace(
            self._serving[1], message=observation.message, updating=True, update_failed=False
        ), left
