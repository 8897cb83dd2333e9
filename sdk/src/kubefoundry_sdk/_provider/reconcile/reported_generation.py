"""Decides which generation `Ready` and `status.observedGeneration` name while a model serves (contract §3).

The rule, for all providers:

1. The newest generation, from the moment at which it was applied completely and the upstream reports that its rollout
   is complete (`_obstacle`). A later rollout of the same spec does not change that.
2. Before that, the generation that served last.
3. `NO_GENERATION` if that is unknown: nothing has served in between (`forget_serving`), or others have changed fields
   that pods follow, so that pods of their spec may serve (`note_foreign_pods`). After that, 1. applies again.

`kubectl wait`, kstatus and Argo CD compare both with `metadata.generation`. So they do not report success for an edit
that is refused, waiting, rolling out or failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubefoundry_sdk._api import conditions, reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.untrusted import mapping
from kubefoundry_sdk._provider.contract import Endpoint, Observation, Provider
from kubefoundry_sdk._provider.health.acknowledgement import Acknowledgement, is_generation
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.upstream_status import outdated
from kubefoundry_sdk._runtime.wait import Wait

NO_GENERATION: Final = 0
"""The reported value if it is unknown which earlier generation serves. Generations begin with 1."""


@dataclass(slots=True)
class Generations:
    """The memory of a process about one ModelDeployment's generations."""

    acknowledgement: Acknowledgement = field(default_factory=Acknowledgement)
    settling: Wait = field(default_factory=Wait)
    """The wait for an acknowledged change of the upstream object to show up in its status."""
    applied: tuple[str, int] | None = None
    """The uid of the upstream object and the generation of the ModelDeployment that was applied to it completely."""
    idle: tuple[str, int] | None = None
    """The uid and generation of the upstream object when nothing was serving."""
    serving: int | None = None
    """The generation that this process found serving last. None if it has not looked, so that the status names it."""
    endpoint: Endpoint | None = None
    """The endpoint when the newest generation served last."""


@dataclass(frozen=True, slots=True)
class Holdback:
    """An earlier generation serves.

    Attributes:
        generation: The generation to report.
        why: The obstacle to the newest one, for the message; empty if the observation's own message names it.
        left: Seconds until the obstacle may be gone without an event, or None.
    """

    generation: int
    why: str = ""
    left: float | None = None


def note_applied(generations: Generations, report: Report, upstream: Object) -> None:
    """Record that the newest generation was applied completely."""
    generations.applied = (_version(upstream)[0], report.generation)


def note_idle(generations: Generations, upstream: Object) -> None:
    """Record that nothing serves at this version of the upstream object, or that it was just created."""
    generations.idle = _version(upstream)
    forget_serving(generations)


def forget_serving(generations: Generations) -> None:
    """Record that nothing serves. Pods that serve later may be of any generation, so none is remembered."""
    generations.serving, generations.endpoint = NO_GENERATION, None


def note_foreign_pods(generations: Generations) -> None:
    """Record that others changed fields that pods follow, so that no applied generation is known to serve."""
    forget_serving(generations)
    generations.applied = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look at a model that serves.

    Attributes:
        live: The ModelDeployment.
        upstream: The upstream object.
        report: The results of the steps before.
        seen: The observation, with phase `Running`.
        provider: Our provider.
        manager: Our field manager.
        now: Monotonic seconds.
        names_generation: Whether a status has to name its generation (`Upstream.names_generation`).
    """

    live: Object
    upstream: Object
    report: Report
    seen: Observation
    provider: Provider
    manager: str
    now: float
    names_generation: bool = False


def judge(generations: Generations, snapshot: Snapshot) -> Holdback | None:
    """Return the holdback of a model that serves, or None if the newest generation serves.

    Args:
        generations: The memory of this ModelDeployment. Updated.
        snapshot: The current state of the model.
    """
    held = _held(generations, snapshot)
    if held is None:
        generations.serving = snapshot.report.generation
        return None
    why, left = held
    generations.serving = _earlier(generations, snapshot)
    return Holdback(generations.serving, why, left)


def _held(generations: Generations, snapshot: Snapshot) -> tuple[str, float | None] | None:
    """Return the obstacle to the newest generation, and the seconds until it may be gone; None if there is none."""
    report, model = snapshot.report, LiveModelDeployment(snapshot.live)
    if foreign := _foreign_spec(report):
        note_foreign_pods(generations)
        return foreign, None
    if model.is_true(reasons.READY) and _known(generations, model) >= report.generation:
        # The newest generation has been Ready, so any later change of the pods concerns its own pods.
        if report.generation == model.generation:
            generations.acknowledgement.confirm(snapshot.upstream)
        return None
    return _obstacle(generations, snapshot)


def _foreign_spec(report: Report) -> str:
    """Return the changes by others that are in force, in one clause; empty if there are none."""
    if report.left_alone:
        return f"someone keeps changing {report.left_alone}, which is no longer reverted"
    return report.unreverted or report.replaced


def _obstacle(generations: Generations, snapshot: Snapshot) -> tuple[str, float | None] | None:
    """Return why the newest generation does not serve yet, and the seconds until it may; None if it serves."""
    upstream, provider, seen = snapshot.upstream, snapshot.provider, snapshot.seen
    # Call this each time, because it also remembers the status before the next edit.
    processed = generations.acknowledgement.is_processed(
        upstream, snapshot.manager, names_generation=snapshot.names_generation
    )
    if seen.acknowledged is not None:
        processed = seen.acknowledged
    model = LiveModelDeployment(snapshot.live)
    requested = model.requested_provider
    version, reporter = _version(upstream), provider.upstream.reporter(provider.title)
    if requested and requested != provider.name:
        selected = model.condition(reasons.PROVIDER_SELECTED)
        if selected and selected["reason"] == "ProviderNotRegistered":
            return selected["message"], None
        return f"it names provider {requested}, which has not taken over", None
    if generations.applied != (version[0], snapshot.report.generation):
        return ("" if snapshot.report.stop else "it is not applied yet"), None
    if upstream["metadata"].get("deletionTimestamp"):
        return "the object that serves is being deleted", None
    if seen.updating or seen.update_failed:
        return "", None
    if not processed:
        return f"{reporter} {_unprocessed(upstream)}", None
    if generations.idle == version:
        # Nothing served at this version, so the status cannot still show the pods of an earlier one.
        return None
    left = generations.settling.left([str(part) for part in version], provider.settles, snapshot.now)
    return (f"waiting for the status of {reporter} to settle", left) if left > 0 else None


def _unprocessed(upstream: Object) -> str:
    """Return why the status is not about the newest spec, as the end of a sentence."""
    status = mapping(upstream.get("status"))
    generation = _version(upstream)[1]
    stated = status.get("observedGeneration")
    # The provider itself may decide that a status is not about the newest spec.
    return outdated(None if is_generation(stated, generation) else stated, generation)


def reported(status: Mapping[str, Any]) -> int:
    """Return the oldest generation that the status of a ModelDeployment names."""
    ready = conditions.find(status.get("conditions"), reasons.READY) or {}
    named = [status.get("observedGeneration"), ready.get("observedGeneration")]
    return min((number for number in named if isinstance(number, int)), default=NO_GENERATION)


def _version(upstream: Object) -> tuple[str, int]:
    """Return the uid and generation of an upstream object."""
    meta = upstream["metadata"]
    return str(meta.get("uid")), int(meta.get("generation") or 1)


def _known(generations: Generations, model: LiveModelDeployment) -> int:
    """Return the generation that served last, as far as it is known.

    It is known while something has served at each look since that generation was found serving. Only a new process
    takes it from the status, because others may write there. If nothing served, the status names the newest
    generation, so it is not used then.
    """
    if generations.serving is not None:
        return generations.serving
    ready = model.condition(reasons.READY) or {}
    has_served = ready.get("status") == "True" or ready.get("reason") == "EndpointUnverified"
    return reported(model.status) if has_served else NO_GENERATION


def _earlier(generations: Generations, snapshot: Snapshot) -> int:
    """Return the generation that serves instead of the newest one, as far as it is known."""
    known = _known(generations, LiveModelDeployment(snapshot.live))
    return known if known < snapshot.report.newest else NO_GENERATION
