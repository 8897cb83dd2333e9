"""The selector's status fields of a ModelDeployment: a pure function of the object.

Contract §3 (whose turn it is) and contract §5 (a selection is kept unless the user's change, the annotation reselect,
or a refusal before anything was created requires another).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from kubefoundry_sdk.api import conditions, handover, names, reasons
from kubefoundry_sdk.api.conditions import Condition, condition, find
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_selector.candidate import Provider, Request, incapabilities, request
from kubefoundry_selector.memory import SELECTED, Memory, mark, quoted, recall, refusals, shortened
from kubefoundry_selector.select import Choose, Decision, Select, by, select

RESELECT_FAILED: Final = "reselection requested, but: "


@dataclass(frozen=True, slots=True)
class Standing:
    """The current selection.

    Attributes:
        condition: `ProviderSelected`, {} if there is none.
        text: Its message, if a selector wrote it.
        memory: None if core has decided, or a selector that keeps no memory.
    """

    name: str | None
    reason: str
    condition: Mapping[str, Any]
    text: str
    memory: Memory | None

    @property
    def ours(self) -> bool:
        """Whether a selector has decided."""
        return self.condition.get("reason") in SELECTED

    @property
    def reselect(self) -> str | None:
        """The last value of the annotation that was acted on."""
        return self.memory.reselect if self.memory else None

    @property
    def settled(self) -> bool:
        return self.name is not None and self.condition.get("status") == "True"


def keep_or_choose(deployment: Object, registered: Sequence[Provider], choose: Choose) -> Object | None:
    """As `decide`, with another selector's choice: what is kept, and when a new choice is made, are the same."""
    return decide(deployment, registered, by(choose))


def decide(deployment: Object, registered: Sequence[Provider], choice: Select = select) -> Object | None:
    """The status fields that the selector has to own now, conditions without transition times.

    choice: chooses a provider if there is none to keep.

    {} releases everything. None changes nothing: it is not the selector's turn, or not yet time.
    """
    meta = deployment["metadata"]
    live: Object = deployment.get("status") or {}
    wanted = explicit(deployment)
    if wanted:
        # Release what we hold only after core has taken it over: in between nothing would be published.
        taken = (find(live.get("conditions"), reasons.PROVIDER_SELECTED) or {}).get("reason")
        current = (live.get("provider") or {}).get("name")
        return {} if taken == "ExplicitlySelected" and current == wanted else None
    paused = (meta.get("annotations") or {}).get(names.PAUSED_ANNOTATION) == "true"
    valid = conditions.is_true(live.get("conditions"), reasons.VALIDATED, generation=meta["generation"])
    if meta.get("deletionTimestamp") or paused or not valid:
        return None
    return _turn(deployment, _standing(live), registered, choice)


def unsettled(deployment: Object, status: Object | None = None) -> bool:
    """Whether a change of the registered providers may change the selection. status: in place of the live one."""
    standing = _standing(deployment.get("status") or {} if status is None else status)
    return not explicit(deployment) and (not standing.settled or RESELECT_FAILED in standing.text)


def announcement(deployment: Object, decided: Object) -> tuple[Literal["Normal", "Warning"], str, str] | None:
    """The Event (type, reason, note) that reports a change of the selection, once it is written (contract §4.21)."""
    before, after = _standing(deployment.get("status") or {}), _standing(decided)
    if after.settled and (after.name != before.name or after.reselect != before.reselect):
        return "Normal", "ProviderSelected", f"Selected provider '{after.name}': {after.reason}"
    unsuccessful = after.condition and (not after.settled or RESELECT_FAILED in after.text)
    if unsuccessful and (after.text, after.settled) != (before.text, before.settled):
        reason = "ReselectFailed" if after.settled else str(after.condition["reason"])
        return "Warning", reason, after.text
    return None


def explicit(deployment: Object) -> str | None:
    """`spec.provider.name`."""
    named = ((deployment.get("spec") or {}).get("provider") or {}).get("name")
    return str(named) if named else None


def _standing(live: Object) -> Standing:
    chosen = live.get("provider") or {}
    held = find(live.get("conditions"), reasons.PROVIDER_SELECTED) or {}
    text, memory = recall(live)
    return Standing(chosen.get("name"), chosen.get("selectedReason", ""), held, text, memory)


def _turn(deployment: Object, standing: Standing, registered: Sequence[Provider], choice: Select) -> Object:
    generation: int = deployment["metadata"]["generation"]
    current = standing.condition.get("observedGeneration") == generation
    asked_again = mark((deployment["metadata"].get("annotations") or {}).get(names.RESELECT_ANNOTATION))
    known = standing.memory or Memory()
    memory = Memory(known.left_out if current else {}, asked_again or known.reselect)

    # Taken over from core, or from a selector that keeps no memory: an annotation from before does not count.
    reselect = standing.memory is not None and asked_again is not None and asked_again != known.reselect
    refusal = None if reselect else refused(deployment, standing.name)
    if reselect:
        memory = Memory({}, memory.reselect)
    elif refusal is not None and standing.name and standing.name not in memory.left_out:
        memory = memory.without(standing.name, quoted(refusal))
    elif standing.ours and standing.settled and current and refusal is None:
        return _kept(standing, memory, generation)

    asked = request(deployment, memory.left_out)
    if not reselect and _stays(asked, standing, registered):
        return _kept(standing, memory, generation)

    decision = choice(asked, registered)
    if decision.provider is not None:
        return _chosen(decision, memory, generation)
    if reselect and standing.settled:
        failed = Memory(memory.left_out, standing.reselect)
        return _kept(standing, failed, generation, f"; {RESELECT_FAILED}{decision.text}")
    if (holder := _serving(deployment, standing.name)) is not None:
        return _handed_back(holder, decision, memory, generation)
    return _none(decision, standing, memory, generation)


def _stays(asked: Request, standing: Standing, registered: Sequence[Provider]) -> bool:
    """Whether to keep the provider of an earlier spec, or one that core or nobody claims.

    Priority, health or a removed registration never change it (contract §5).
    """
    if standing.name is None or standing.name in asked.left_out:
        return False
    offered = next((offered for offered in registered if offered.name == standing.name), None)
    if offered is None:
        return standing.condition.get("reason") not in ("NoHealthyProviders", "NoMatchingProvider")
    return not incapabilities(asked, offered)


def refused(deployment: Object, provider: str | None) -> str | None:
    """What the provider said if it refused this generation before creating anything, else None.

    Only the provider's own condition counts: it may still be the previous provider's.
    """
    live = deployment.get("status") or {}
    found = find(live.get("conditions"), reasons.PROVIDER_COMPATIBLE)
    if (
        provider is None
        or found is None
        or found.get("status") != "False"
        or found.get("observedGeneration") != deployment["metadata"]["generation"]
        or _has_made(deployment, provider)
        or not handover.states(deployment, provider, reasons.PROVIDER_COMPATIBLE)
    ):
        return None
    return str(found.get("message", ""))


def _has_made(deployment: Object, provider: str) -> bool:
    """Whether the provider has created anything. While another one holds the model, that one published what is
    there."""
    live = deployment.get("status") or {}
    published = (live.get("provider") or {}).get("resourceName") or conditions.is_true(
        live.get("conditions"), reasons.RESOURCE_CREATED
    )
    return provider in handover.holders(deployment) or bool(published and not _serving(deployment, provider))


def _serving(deployment: Object, chosen: str | None) -> str | None:
    """Another provider that still holds the model: it serves until the chosen one reports that it takes over."""
    return next((name for name in handover.holders(deployment) if name != chosen), None)


def _handed_back(holder: str, decision: Decision, memory: Memory, generation: int) -> Object:
    """All that were asked have refused, and none is left: the model stays where it is served."""
    message = f"{decision.text}. Provider {holder} keeps serving"
    kept = {"name": holder, "selectedReason": f"kept → {holder} (no other provider takes it)"}
    return _fields(kept, _selected(False, decision.reason, message, generation), memory)


def _chosen(decision: Decision, memory: Memory, generation: int) -> Object:
    message = f"Provider {decision.provider} auto-selected{refusals(memory.left_out)}"
    chosen = {"name": decision.provider, "selectedReason": decision.text}
    return _fields(chosen, _selected(True, decision.reason, message, generation), memory)


def _kept(standing: Standing, memory: Memory, generation: int, note: str = "") -> Object:
    message = f"Provider {standing.name} auto-selected{refusals(memory.left_out)}{note}"
    return _fields(_unchanged(standing), _selected(True, "AutoSelected", message, generation), memory)


def _none(decision: Decision, standing: Standing, memory: Memory, generation: int) -> Object:
    """No provider fits. The current one keeps the model, and reports what it cannot do itself."""
    kept = f". Provider {standing.name} keeps serving" if standing.name else ""
    found = _selected(False, decision.reason, f"{decision.text}{kept}", generation)
    return _fields(_unchanged(standing) if standing.name else None, found, memory)


def _fields(provider: Mapping[str, Any] | None, found: Condition, memory: Memory) -> Object:
    """All status fields of the selector."""
    chosen = {"provider": dict(provider)} if provider else {}
    return {**chosen, "selection": memory.to_status(), "conditions": [found]}


def _unchanged(standing: Standing) -> dict[str, Any]:
    """The provider fields unchanged; the reason of an explicit choice ended with that choice."""
    reason = standing.reason
    if reason in ("", reasons.EXPLICIT_SELECTION):
        reason = f"kept → {standing.name} (selected before)"
    return {"name": standing.name, "selectedReason": reason}


def _selected(status: bool, reason: str, message: str, generation: int) -> Condition:
    return condition(reasons.PROVIDER_SELECTED, status, reason, shortened(message), generation=generation)
