"""The verdict on one model: whether its newest edit serves, and if not, why.

Lists, `status`, `doctor`, `wait` and the page all show this verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from kubefoundry_cli.advice import ADVICE, advice, is_trouble
from kubefoundry_cli.hint import hint
from kubefoundry_cli.output import clean, duration, since
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.reasons import (
    PROVIDER_COMPATIBLE,
    PROVIDER_HEALTHY,
    PROVIDER_SELECTED,
    READY,
    RESOURCE_CREATED,
    STALE_STATUS,
    VALIDATED,
)
from kubefoundry_sdk._api.untrusted import mapping, mappings

STUCK: Final = 600.0
"""Seconds without success after which a model counts as stuck: the default timeout of `wait`."""

State = Literal[
    "Serving",
    "Updating",
    "Starting",
    "Stuck",
    "Refused",
    "NotApplied",
    "Paused",
    "WaitingForProvider",
    "Failed",
    "ScaledToZero",
    "Deleting",
]
STATES: Final[tuple[State, ...]] = get_args(State)

PHRASES: Final[dict[State, str]] = {
    "Updating": "is being updated",
    "Starting": "is starting",
    "Stuck": "is stuck",
    "Refused": "is refused",
    "NotApplied": "is not applied",
    "Paused": "is paused",
    "WaitingForProvider": "waits for a provider",
    "Failed": "has failed",
    "ScaledToZero": "is scaled to zero",
    "Deleting": "is being deleted",
}
"""The state in a sentence whose subject is the model or its newest edit."""

OBSTACLES: Final[dict[str, State]] = {
    VALIDATED: "Refused",
    PROVIDER_SELECTED: "WaitingForProvider",
    PROVIDER_COMPATIBLE: "Refused",
    RESOURCE_CREATED: "NotApplied",
}
"""Conditions that hold an edit back while they are False, in reconcile order."""

REFUSALS: Final = {type_: state for type_, state in OBSTACLES.items() if state == "Refused"}

SILENCES: Final[dict[str, State]] = {PROVIDER_HEALTHY: "WaitingForProvider", STALE_STATUS: "Stuck"}
"""Conditions that report that nobody works on the edit."""

PROGRESS: Final = frozenset({"Recreating", "WaitingForCleanup", "Terminating"})
"""Reasons of ResourceCreated that go away by themselves."""

PASSING: Final = frozenset({*PROGRESS, "NoSelector", "NoHealthyProviders", "ApplyFailed", "ProviderError"})
"""Reasons that may go away although nobody changes anything."""


@dataclass(frozen=True, slots=True)
class Health:
    """The verdict on one model.

    Attributes:
        name: The model's name.
        state: Summary of the verdict.
        generation: The generation of the newest edit.
        serves: The generation that serves, None if none does.
        reason: Why the newest edit does not serve, or what else is wrong; empty if nothing is.
        remedy: What to do about the reason; may be empty.
        final: Whether the newest edit cannot serve before somebody changes something.
        endpoint: Where the model answers, None if that is not published.
    """

    name: str
    state: State
    generation: int
    serves: int | None
    reason: str = ""
    remedy: str = ""
    final: bool = False
    endpoint: str | None = None

    @property
    def ready(self) -> bool:
        """Check whether the newest edit serves and will keep serving. During a pause, no controller reports that."""
        return self.serves == self.generation and self.state not in ("Deleting", "Refused", "Paused")

    @property
    def severity(self) -> Literal["good", "pending", "wrong"]:
        """Return good: nothing to do; pending: it may become ready by itself; wrong: it needs somebody."""
        if self.state in ("Serving", "ScaledToZero"):
            return "wrong" if self.reason and self.state == "Serving" else "good"
        return "pending" if self.state in ("Starting", "Updating") else "wrong"

    @property
    def text(self) -> str:
        """Return the verdict in one line that begins with the model's name."""
        todo = f"; {self.remedy}" if self.remedy else ""
        if self.state == "Serving":
            also = f", but {self.reason}" if self.reason else ""
            serves = f"serves generation {self.serves} at {self.endpoint or 'no endpoint'}"
            return f"{self.name} {serves}{also}{todo}"
        why = f": {self.reason}" if self.reason else ""
        return self._text_of_other(f"{PHRASES[self.state]}{why}{todo}")

    def _text_of_other(self, verdict: str) -> str:
        """Return the verdict in one line if the newest edit does not serve."""
        refused = self.state == "Refused" and self.serves == self.generation
        if self.serves is None or self.state == "Deleting" or refused:
            return f"{self.name} {verdict}"
        which = f"generation {self.serves}" if self.serves else "an earlier generation"
        if self.state == "Paused":
            return f"{self.name} {verdict}; {which} served when it was paused"
        return f"{self.name} serves {which}, not yet {self.generation}, which {verdict}"


def health_of(obj: Object) -> Health:
    """Return the verdict on a ModelDeployment. Its status may be of any shape: others write there, too."""
    meta, status = obj["metadata"], mapping(obj.get("status"))
    name, generation = str(meta["name"]), meta.get("generation")
    conditions = mappings(status.get("conditions"))
    ready = find(conditions, READY) or {}
    serves = ready.get("observedGeneration") if ready.get("status") == "True" else None
    newest = generation if isinstance(generation, int) else 0
    state, reason, remedy, final = _verdict(obj, conditions, ready, newest, serves)
    return Health(
        name,
        state,
        newest,
        serves if isinstance(serves, int) else None,
        clean(reason),
        remedy,
        final,
        endpoint(status),
    )


Verdict = tuple[State, str, str, bool]
"""State, reason, remedy, and whether it is final."""


def _verdict(
    obj: Object, conditions: list[Mapping[str, Any]], ready: Mapping[str, Any], newest: int, serves: object
) -> Verdict:
    meta, name = obj["metadata"], str(obj["metadata"]["name"])
    if meta.get("deletionTimestamp"):
        return "Deleting", _held_by(obj), "wait for its provider to clean up", True
    if mapping(meta.get("annotations")).get(names.PAUSED_ANNOTATION) == "true":
        return (
            "Paused",
            "no change is applied or reported",
            hint(f"resume {name}", meta.get("namespace")),
            True,
        )
    if refused := _obstacle(obj, conditions, newest, REFUSALS):
        # Checked before Ready: providers of earlier releases report Ready for a refused edit.
        return refused
    if serves is not None and serves == newest:
        first = next(troubles(obj, conditions), None)
        return ("Serving", first.text, first.remedy, False) if first else ("Serving", "", "", False)
    if not conditions:
        remedy = f"ask an administrator: {hint('controller status')}"
        return _waiting(obj, "core has not reconciled it", remedy, serves)
    return _obstacle(obj, conditions, newest, OBSTACLES) or _outcome(obj, conditions, ready, newest, serves)


def _obstacle(
    obj: Object, conditions: list[Mapping[str, Any]], newest: int, among: Mapping[str, State]
) -> Verdict | None:
    """Return the verdict if a condition of the newest edit holds it back."""
    for type_, state in among.items():
        condition = find(conditions, type_)
        if condition and is_trouble(condition) and condition.get("observedGeneration") == newest:
            reason = condition.get("reason")
            if reason in PROGRESS:
                continue
            return state, _message_of(condition), advice(condition, obj), reason not in PASSING
    return None


def _outcome(
    obj: Object, conditions: list[Mapping[str, Any]], ready: Mapping[str, Any], newest: int, serves: object
) -> Verdict:
    """Return the verdict on an edit that nothing refused: its provider, its upstream object and its pods decide."""
    if silence := _silence(obj, conditions):
        return silence
    message = str(mapping(obj.get("status")).get("message") or ready.get("message") or "")
    if serves is not None:
        return _waiting(
            obj, message, hint(f"wait {obj['metadata']['name']}", obj["metadata"].get("namespace")), serves
        )
    if ready.get("observedGeneration") != newest:
        return _waiting(obj, message, "", serves)
    remedy = advice(ready, obj)
    if ready.get("reason") == "ScaledToZero":
        return "ScaledToZero", message, remedy, True
    if ready.get("reason") == "Failed":
        return "Failed", message or "no message", remedy, True
    return _waiting(obj, message, remedy, serves)


def _silence(obj: Object, conditions: list[Mapping[str, Any]]) -> Verdict | None:
    """Return the verdict if nobody works on the edit."""
    for type_, state in SILENCES.items():
        condition = find(conditions, type_)
        if condition and is_trouble(condition):
            return state, _message_of(condition), advice(condition, obj), False
    return None


def _held_by(obj: Object) -> str:
    """Return the finalizers of a ModelDeployment that is being deleted, and the report of its provider."""
    finalizers = ", ".join(map(str, obj["metadata"].get("finalizers") or ())) or "nothing"
    status = mapping(obj.get("status"))
    message = status.get("message") if status.get("phase") == "Terminating" else None
    return f"held by {finalizers}{f' ({message})' if message else ''}"


def _waiting(obj: Object, reason: str, remedy: str, serves: object) -> Verdict:
    """Return Starting or Updating, or Stuck after STUCK seconds."""
    age = since(_edited(obj) if serves is not None else _not_ready_since(obj))
    if age is not None and age > STUCK:
        return "Stuck", f"not ready for {duration(age)}: {reason or 'no message'}", remedy, False
    return ("Starting" if serves is None else "Updating"), reason, remedy, False


def _not_ready_since(obj: Object) -> str | None:
    ready = find(mappings(mapping(obj.get("status")).get("conditions")), READY) or {}
    stamps = (ready.get("lastTransitionTime"), _edited(obj), obj["metadata"].get("creationTimestamp"))
    times = [str(stamp) for stamp in stamps if stamp]
    return max(times, default=None)


def _edited(obj: Object) -> str | None:
    """Return the time of the last change of the spec, as managedFields show it."""
    stamps = [
        str(entry.get("time"))
        for entry in mappings(obj["metadata"].get("managedFields"))
        if "f:spec" in mapping(entry.get("fieldsV1")) and entry.get("time")
    ]
    return max(stamps, default=None)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A condition that is trouble.

    Attributes:
        type: The type of the condition.
        reason: Its reason.
        message: Its message.
        text: Type, reason and message in one line.
        remedy: What to do.
    """

    type: str
    reason: str
    message: str
    text: str
    remedy: str


def troubles(obj: Object, conditions: list[Mapping[str, Any]]) -> Iterator[Trouble]:
    """Yield the conditions that report trouble, in reconcile order."""
    for type_ in ADVICE:
        condition = find(conditions, type_)
        if condition is not None and is_trouble(condition):
            older = condition.get("observedGeneration") != obj["metadata"].get("generation")
            reason, message = str(condition.get("reason")), clean(_message_of(condition))
            text = f"{type_}: {reason}{' (of an earlier generation)' if older else ''}: {message}"
            yield Trouble(type_, reason, message, text, advice(condition, obj))


def _message_of(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message") or "no message")


def endpoint(status: Mapping[str, Any]) -> str | None:
    """Return the URL or `service:port` where the model answers, None if the status has neither."""
    published = mapping(status.get("endpoint"))
    if published.get("url"):
        return str(published["url"])
    return (
        f"{published['service']}:{published['port']}"
        if published.get("service") and published.get("port")
        else None
    )


def provider_of(obj: Object) -> str | None:
    """Return the provider that runs the model, as its status reports it."""
    name = mapping(mapping(obj.get("status")).get("provider")).get("name")
    return str(name) if name else None


def phase(obj: Object) -> str | None:
    """Return the phase of a ModelDeployment: Terminating from its deletion on, even if that is not reported yet."""
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    reported = mapping(obj.get("status")).get("phase")
    return str(reported) if reported else None


def summary(obj: Object) -> str:
    """Return phase and message in one line."""
    status = mapping(obj.get("status"))
    return clean(f"{phase(obj) or 'Pending'}: {status.get('message') or 'waiting for core'}")
