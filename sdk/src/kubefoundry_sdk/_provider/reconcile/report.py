"""A provider's part of a ModelDeployment's status (contract §3), built from a reconcile's results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._api.conditions import Condition, condition
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.start_text import describe_start
from kubefoundry_sdk._api.untrusted import mappings
from kubefoundry_sdk._provider.contract import Observation, Provider


@dataclass(frozen=True, slots=True)
class Stop:
    """The reason why nothing (more) is written upstream.

    Attributes:
        type: The condition's type.
        reason: Its reason.
        message: Its message.
        failed: Whether a user has to change something.
        retry: Seconds after which to try again without an event; None to wait for an event.
    """

    type: str
    reason: str
    message: str
    failed: bool
    retry: float | None = None


_DELETING: Final = frozenset({"Recreating", "Terminating"})
"""Reasons of a stop that means that the serving object is about to be deleted."""


UNREAD: Final = "ProviderError"
"""Reason of `StaleStatus` if the provider cannot read the upstream's status."""


_UNRELATED: Final = frozenset({"ApplyFailed", "ProviderError"})
"""Reasons of a stop that is not about the spec."""


@dataclass(slots=True)
class Report:
    """Filled step by step by a reconcile; `status` turns it into the owned status fields."""

    generation: int
    seen_generation: int | None = None
    """The generation that the observation describes, if it is not this one."""
    held_back: str = ""
    """The obstacle that keeps an earlier generation serving; empty if the stop or the observation names it."""
    applied: bool = False
    """Whether this generation was applied completely."""
    left_alone: str = ""
    """The fields that somebody keeps changing and that are no longer reverted. A spec other than the user's serves,
    or soon will."""
    unreverted: str = ""
    """The fields that others changed and that the stop keeps from being reverted, in one clause."""
    is_mixed: bool = False
    """Whether the upstream object differs from its record, so that no version serves as a whole."""
    altered: str = ""
    """The values of the upstream objects that admission changed, in one clause."""
    unchecked: str = ""
    """The upstream object that may have fields of earlier versions, in one clause."""
    additions: str = ""
    """The fields that others added to the upstream object, in one clause."""
    replaced: str = ""
    """The additions that replace a program of the spec, so that another program serves."""
    compatible: str | None = None
    """Message of a True `ProviderCompatible`."""
    created: str | None = None
    """Message of a True `ResourceCreated`."""
    override_warning: str | None = None
    engine: str | None = None
    """The selected engine as `status.provider.engine`; None if the spec names one."""
    stop: Stop | None = None
    is_repeated: bool = False
    """Whether this reconcile made no plan and repeats the last report."""
    observation: Observation | None = None
    live: Object | None = None
    endpoint: Mapping[str, Any] | None = None
    """The endpoint of an upstream object that is being deleted, published until it is gone."""
    start: Mapping[str, Any] | None = None
    """The start as `status.start`."""
    stale: str | None = None
    """Message of a True `StaleStatus`."""
    stale_reason: str = "NoUpstreamProgress"
    notes: list[str] = field(default_factory=list)
    newest: int = field(init=False)
    """The generation of the ModelDeployment, even if the report repeats the report of an earlier generation."""

    def __post_init__(self) -> None:
        self.newest = self.generation

    def status(self, provider: Provider) -> dict[str, Any]:
        """Return the status fields that the provider in `status.provider.name` owns (contract §3)."""
        phase, reason, message = self._outcome()
        for clause in (self.altered, self.unchecked, self.additions):
            if clause:
                message = f"{message}; {clause}"
        status: dict[str, Any] = {
            "phase": phase,
            "message": message,
            "observedGeneration": self._observed_generation(),
            "conditions": [*self.conditions(), self._ready(phase, reason, message)],
        }
        if self.live is not None:
            status["provider"] = {
                "resourceName": self.live["metadata"]["name"],
                "resourceKind": provider.upstream.kind,
                "resourceAPIVersion": self.live["apiVersion"],
            }
        if self.engine is not None:
            status.setdefault("provider", {})["engine"] = self.engine
        if self.observation is not None:
            counts = self.observation.replicas
            status["replicas"] = {
                "desired": counts.desired,
                "ready": counts.ready,
                "available": counts.available,
            }
            if self.observation.selector:
                status["selector"] = self.observation.selector
            if phase == "Running":
                endpoint = self.observation.endpoint
                published = asdict(endpoint) | {"apis": list(endpoint.apis)}
                status["endpoint"] = {name: value for name, value in published.items() if value}
            elif self.endpoint is not None:
                status["endpoint"] = dict(self.endpoint)
            if self.start:
                status["start"] = dict(self.start)
        return status

    def _outcome(self) -> tuple[str, str, str]:
        """Return phase, reason of `Ready`, and the one-line message for the user.

        A model that serves stays Running even if its newest spec has a problem. The message reports both.
        """
        seen, stop = self.observation, self.stop
        if seen is not None and seen.phase == "Running":
            return "Running", "DeploymentReady", self._serving_message(seen)
        if stop is not None:
            return _stopped(stop, seen)
        if seen is not None:
            return seen.phase, seen.reason, seen.message
        if self.left_alone:
            return (
                "Pending",
                "Progressing",
                f"Someone keeps changing {self.left_alone}, so it is not observed",
            )
        return "Pending", "Progressing", "Waiting for the upstream object"

    def _serving_message(self, seen: Observation) -> str:
        if self.stop is not None:
            return f"{self.stop.message}{self._serving_clause(self.stop, seen)}"
        if not self.held_back:
            return seen.message
        # Many providers name the obstacle themselves.
        obstacle = "" if self.held_back in seen.message else f"{self.held_back}; "
        return f"The spec that serves may not be the newest: {obstacle}{seen.message}"

    def _serving_clause(self, stop: Stop, seen: Observation) -> str:
        """Return the clause after a stop's message that names the version that serves, if it is known."""
        if self.unreverted:
            return f"; {self.unreverted}"
        if stop.reason in _DELETING:
            return ""
        if self.stale is not None and self.stale_reason == UNREAD:
            # The status could not be read, so it is not known whether the model serves now.
            return f"; {seen.message}"
        if self.is_mixed:
            return "; the model keeps serving"
        serving = self._observed_generation()
        if not serving:
            return "; the model serves, but it is not known which version"
        return (
            "; the last good version keeps serving" if serving < self.newest else "; the model keeps serving"
        )

    def conditions(self) -> list[Condition]:
        """Return all conditions but Ready. A provider reports only these while another provider still serves."""
        conditions = []
        stop = self.stop
        if stop is not None and stop.type == reasons.PROVIDER_COMPATIBLE:
            conditions.append(self._condition(stop.type, False, stop.reason, stop.message))
        elif self.compatible is not None:
            text = ". ".join([self.compatible, *self.notes])
            conditions.append(
                self._condition(reasons.PROVIDER_COMPATIBLE, True, "CompatibilityVerified", text)
            )
        if stop is not None and stop.type == reasons.RESOURCE_CREATED:
            conditions.append(self._condition(stop.type, False, stop.reason, stop.message))
        elif self.created is not None:
            conditions.append(
                self._condition(reasons.RESOURCE_CREATED, True, "ResourceCreated", self.created)
            )
        if self.stale:
            conditions.append(self._condition(reasons.STALE_STATUS, True, self.stale_reason, self.stale))
        if self.override_warning:
            conditions.append(
                self._condition(reasons.OVERRIDES_VALID, False, "UnknownKeys", self.override_warning)
            )
        return conditions

    def _ready(self, phase: str, reason: str, message: str) -> Condition:
        generation = self._observed_generation()
        return condition(reasons.READY, phase == "Running", reason, message, generation=generation)

    def _observed_generation(self) -> int:
        return self.generation if self.seen_generation is None else self.seen_generation

    def _condition(self, type_: str, status: bool, reason: str, message: str) -> Condition:
        return condition(type_, status, reason, message, generation=self.generation)


def _stopped(stop: Stop, seen: Observation | None) -> tuple[str, str, str]:
    """Return phase, reason and message of a model that does not serve, and whose newest spec is not written."""
    if seen is not None and (stop.type == reasons.PROVIDER_SELECTED or stop.reason in _UNRELATED):
        # The obstacle is another provider's object, or the write itself. This object is not affected.
        return seen.phase, seen.reason, f"{seen.message}; {stop.message}"
    if seen is not None and seen.phase == "Failed":
        return "Failed", "Failed", f"{seen.message}; {stop.message}"
    return ("Failed", "Failed", stop.message) if stop.failed else ("Pending", "Progressing", stop.message)


Transition = tuple[Literal["Normal", "Warning"], str, str]


_REQUESTED: Final = frozenset({"DryRun", "Recreating", "WaitingForCleanup", "Terminating"})
"""Reasons of a False condition that follows from a request of the user and is no problem."""


def transitions(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Transition]:
    """Return an Event (type, reason, note) for each transition between two statuses (contract §4.21)."""
    old = {item["type"]: item for item in mappings(before.get("conditions"))}
    events: list[Transition] = []
    for item in mappings(after.get("conditions")):
        previous, severity = old.get(item["type"], {}), _severity(item)
        if severity and (previous.get("status"), previous.get("reason")) != (item["status"], item["reason"]):
            events.append((severity, item["reason"], _note(item, after)))
    failed = after.get("phase") == "Failed" and before.get("phase") != "Failed"
    if failed and not any(kind == "Warning" for kind, _, _ in events):
        events.append(
            ("Warning", "ProviderError", f"Provider resource in error state: {after.get('message')}")
        )
    return events


def _note(item: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """Return the Event's note: the message of the condition, and for a model that serves its start."""
    text = describe_start(status.get("start")) if item["type"] == reasons.READY else ""
    return f"{item['message']}; start of {text}" if text else item["message"]


def _severity(item: Mapping[str, Any]) -> Literal["Normal", "Warning"] | None:
    """Return the type of the Event about a new condition, None if there is no Event."""
    if item["type"] == reasons.STALE_STATUS:
        return "Warning"
    if item["status"] == "True":
        return "Normal" if item["type"] in (reasons.RESOURCE_CREATED, reasons.READY) else None
    obstacles = (reasons.RESOURCE_CREATED, reasons.PROVIDER_COMPATIBLE, reasons.OVERRIDES_VALID)
    if item["status"] != "False" or item["type"] not in obstacles:
        return None
    return "Normal" if item["reason"] in _REQUESTED else "Warning"
