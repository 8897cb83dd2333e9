"""Collects the result of one write of all children."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kubefoundry_llamastack.model_deployments import Resolved
from kubefoundry_llamastack.snapshot import Obstacle
from kubefoundry_llamastack.write import Conflict
from kubefoundry_sdk._runtime.refusals import Refused

Event = tuple[Literal["Normal", "Warning"], str, str]


@dataclass(slots=True)
class Outcome:
    """The result of one write of all children.

    Attributes:
        obstacles: Children that could not be written, and why.
        resolved: The CR's ModelDeployments.
        retry: Seconds until the next attempt, None to wait for an event.
        events: Type, reason and note of each Event to record.
    """

    obstacles: list[Obstacle] = field(default_factory=list)
    resolved: list[Resolved] = field(default_factory=list)
    retry: float | None = None
    events: list[Event] = field(default_factory=list)

    def retry_after(self, seconds: float) -> None:
        """Retry after these seconds, or earlier if another child needs it."""
        self.retry = seconds if self.retry is None else min(self.retry, seconds)

    def add_obstacle(self, type_: str, error: Conflict | Refused, reason: str = "") -> None:
        """Add an object that could not be written.

        Args:
            type_: The condition that reports it.
            error: Why it was not written.
            reason: The condition's reason, by default the one of DeploymentReady.
        """
        reason = reason or ("NameConflict" if isinstance(error, Conflict) else "ApplyRejected")
        self.obstacles.append(Obstacle(type_, reason, str(error)))
        if isinstance(error, Refused):
            self.retry_after(error.retry)
