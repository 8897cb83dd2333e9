"""The selector's status fields of a ModelDeployment: a pure function of the object.

Contract §3 defines when it is the selector's turn. A selection is kept unless the user's change, the annotation
`reselect`, or a refusal before anything was created requires another one (contract §5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from kubefoundry_sdk import Object
from kubefoundry_sdk.selector import (
    EXPLICIT_SELECTION,
    PROVIDER_COMPATIBLE,
    PROVIDER_SELECTED,
    PROVIDER_TOO_OLD,
    RESELECT_ANNOTATION,
    RESOURCE_CREATED,
    VALIDATED,
    Condition,
    LiveModelDeployment,
    condition,
    effective_engine,
    find,
    has_reported,
    holders,
    reporting,
    states_engine,
    unreported_by,
)
from kubefoundry_selector.candidate import Provider, Request, incapabilities
from kubefoundry_selector.engines import choose, requests
from kubefoundry_selector.memory import SELECTED, Memory, mark, quoted, recall, refusals, shortened
from kubefoundry_selector.select import Choose, Decision, Select, by, select

RESELECT_FAILED: Final = "reselection requested, but: "


@dataclass(frozen=True, slots=True)
class Selection:
    """The current selection.

    Attributes:
        engine: The engine that was selected with the provider, None if there is none, or the spec names it.
        condition: `ProviderSelected`, {} if there is none.
        text: Its message, if a selector wrote it.
        memory: The selector's memory; None if core has decided, or if the selector that decided keeps none.
    """

    name: str | None
    engine: str | None
    reason: str
    condition: Mapping[str, Any]
    text: str
    memory: Memory | None

    @property
    def ours(self) -> bool:
        """Check whether a selector has decided."""
        return self.condition.get("reason") in SELECTED

    @property
    def reselect(self) -> str | None:
        """Return the last value of the annotation that was acted on."""
        return self.memory.reselect if self.memory else None

    @property
    def is_selected(self) -> bool:
        """Check whether a provider is selected."""
        return self.name is not None and self.condition.get("status") == "True"


def keep_or_choose(deployment: Object, registered: Sequence[Provider], choose: Choose) -> Object | None:
    """Return the status fields that a selector has to own now, with its own choice of a provider.

    A selection is kept by the same rules as in KubeFoundry's selector. {} releases all fields, None changes nothing.
    """
    return decide(deployment, registered, by(choose))


def decide(deployment: Object, registered: Sequence[Provider], choice: Select = select) -> Object | None:
    """Return the status fields that the selector has to own now, conditions without transition times.

    Args:
        deployment: The live ModelDeployment.
        registered: The registered providers.
        choice: Chooses a provider if there is none to keep.

    Returns:
        The fields. {} releases all of them. None changes nothing: it is not the selector's turn, or core has not
        taken over yet.
    """
    live = LiveModelDeployment(deployment)
    if live.requested_provider:
        # Release our fields only after core has taken them over. Otherwise, no component would publish them
        # meanwhile.
        core_reason = (live.condition(PROVIDER_SELECTED) or {}).get("reason")
        is_published = core_reason == "ExplicitlySelected" and live.provider_name == live.requested_provider
        return {} if is_published else None
    selection = _selection(live.status)
    stated = None if live.requested_engine else effective_engine(deployment)
    selection = replace(selection, engine=stated)
    lost = _lost(live, selection, registered)
    if len(lost) == 1:
        # If the memory is lost, too, an annotation that asked for another choice counts as acted on.
        memory = selection.memory if live.status.get("selection") else None
        selection = replace(selection, name=lost[0], memory=memory)
    if live.is_deleting or live.is_paused or not _is_valid(live):
        return _restored(live, selection) if len(lost) == 1 or _has_lost_condition(selection) else None
    if len(lost) > 1:
        return _unknown(live, selection, lost)
    return _decide_valid(live, selection, registered, choice)


def _lost(live: LiveModelDeployment, selection: Selection, registered: Sequence[Provider]) -> list[str]:
    """Return the providers that an emptied status may have named before; empty if it has lost none.

    If a provider's report is in the status, return only that provider. Otherwise return all holders. Some of their
    finalizers may be forged, and a choice of the wrong holder would delete an object that serves.
    """
    if selection.name is not None:
        return []
    reporters = reporting(live.obj)
    candidates = [name for name in reporters or holders(live.obj) if _may_return(name, registered)]
    return candidates[:1] if reporters else candidates


def _unknown(live: LiveModelDeployment, selection: Selection, held_by: Sequence[str]) -> Object:
    """Return the fields while nobody knows which of several providers serves the model.

    The one that serves reports on it without a selection, so the next decision knows it. The others remove their
    finalizers once they run.
    """
    memory = selection.memory or Memory(reselect=mark(live.annotations.get(RESELECT_ANNOTATION)))
    message = (
        f"The status was emptied, and each of the providers {', '.join(held_by)} has a finalizer: waiting for the "
        "one that serves the model to report. If it does not run, name it in spec.provider.name"
    )
    return _fields(None, _selected(False, "NoHealthyProviders", message, live.generation), memory)


def _has_lost_condition(selection: Selection) -> bool:
    """Check whether the status names a provider without `ProviderSelected`."""
    return selection.name is not None and not selection.condition


def _may_return(holder: str, registered: Sequence[Provider]) -> bool:
    """Check whether a finalizer may bring the model back to its provider.

    A tenant may have written the finalizer, so it does not permit a provider that the creator may not use. Nobody has
    checked that for a provider without a registration.
    """
    return any(offered.name == holder and not offered.denied for offered in registered)


def _restored(live: LiveModelDeployment, selection: Selection) -> Object:
    """Return the fields of a lost selection while no selection can be decided.

    Without its condition, generation 0 says that the selector has not decided on the present spec.
    """
    memory = selection.memory or Memory(reselect=mark(live.annotations.get(RESELECT_ANNOTATION)))
    is_decided = selection.ours and selection.is_selected
    return _kept(selection, memory, selection.condition["observedGeneration"] if is_decided else 0)


def _is_valid(live: LiveModelDeployment) -> bool:
    """Check whether core found the newest spec valid, even if its present provider does not know all fields."""
    validated = live.condition(VALIDATED) or {}
    is_current = validated.get("observedGeneration") == live.generation
    return is_current and (validated.get("status") == "True" or validated.get("reason") == PROVIDER_TOO_OLD)


def is_undecided(deployment: Object, status: Object | None = None) -> bool:
    """Check whether a change of the registered providers may change the selection.

    Args:
        deployment: The live ModelDeployment.
        status: Used in place of the live status.
    """
    live = LiveModelDeployment(deployment)
    selection = _selection(live.status if status is None else status)
    return not live.requested_provider and (not selection.is_selected or RESELECT_FAILED in selection.text)


def is_choice(deployment: Object, decided: Object) -> bool:
    """Check whether the fields come from a new choice: another provider, none, or an answer to `reselect`."""
    before, after = _selection(LiveModelDeployment(deployment).status), _selection(decided)
    is_changed = (after.name, after.reselect) != (before.name, before.reselect)
    return is_changed or is_undecided(deployment, decided)


def announcement(deployment: Object, decided: Object) -> tuple[Literal["Normal", "Warning"], str, str] | None:
    """Return the Event (type, reason, note) that reports a written change of the selection (contract §4.21)."""
    before, after = _selection(LiveModelDeployment(deployment).status), _selection(decided)
    is_other_engine = after.engine and before.engine and after.engine != before.engine
    is_new = after.name != before.name or after.reselect != before.reselect or is_other_engine
    if after.is_selected and is_new:
        return "Normal", "ProviderSelected", f"Selected provider '{after.name}': {after.reason}"
    unsuccessful = after.condition and (not after.is_selected or RESELECT_FAILED in after.text)
    if unsuccessful and (after.text, after.is_selected) != (before.text, before.is_selected):
        reason = "ReselectFailed" if after.is_selected else str(after.condition["reason"])
        return "Warning", reason, after.text
    return None


def _selection(live: Object) -> Selection:
    chosen = LiveModelDeployment({"status": live}).provider
    selected = find(live.get("conditions"), PROVIDER_SELECTED) or {}
    text, memory = recall(live)
    name, reason = chosen.get("name") or None, chosen.get("selectedReason", "")
    return Selection(name, chosen.get("engine"), reason, selected, text, memory)


def _decide_valid(
    live: LiveModelDeployment, selection: Selection, registered: Sequence[Provider], choice: Select
) -> Object:
    """Return the fields for a valid spec: keep the selection, or choose again (contract §5)."""
    is_current = selection.condition.get("observedGeneration") == live.generation
    annotation = mark(live.annotations.get(RESELECT_ANNOTATION))
    recalled = selection.memory or Memory()
    memory = replace(recalled, left_out={}, reselect=annotation or recalled.reselect)

    # Without a memory, the selection comes from core, or from a selector that keeps none. An older annotation does
    # not count.
    if selection.memory is not None and annotation not in (None, recalled.reselect):
        return _choose(live, selection, memory, registered, choice, reselect=True)

    if is_current:
        memory = replace(memory, left_out=recalled.left_out)
    is_repeated = memory.has_refused_another(selection.name, selection.engine)
    refusal = refused(live.obj, selection.name, is_repeated=is_repeated)
    if refusal is not None:
        memory = memory.without(str(selection.name), quoted(refusal), selection.engine)
    elif is_current and selection.ours and selection.is_selected and _has_engine(live, selection):
        return _kept(selection, memory, live.generation)
    return _choose(live, selection, memory, registered, choice, reselect=False)


def _choose(
    live: LiveModelDeployment,
    selection: Selection,
    memory: Memory,
    registered: Sequence[Provider],
    choice: Select,
    *,
    reselect: bool,
) -> Object:
    """Return the fields: keep a provider that can stay, otherwise choose. `reselect` requests a new choice."""
    names = {offered.name for offered in registered}
    if not reselect and selection.name and unreported_by(live.obj, selection.name, names):
        # The provider that holds the model reports its engine again. Until then, do not select another engine.
        return _kept(selection, memory, live.generation)
    attempts = requests(live.obj, memory.left_out, reselect=reselect)
    if selection.name and any(attempt.engine in attempts.unfit for attempt in attempts.all):
        # The engine that serves cannot run the spec, and stays (contract §5). Its provider refuses the edit.
        return _kept(selection, memory, live.generation)
    is_refused = memory.has_refused(selection.name, selection.engine)
    for attempt in () if reselect or is_refused else attempts.all:
        if _can_stay(attempt, selection, registered):
            engine = None if attempt.is_engine_named else attempt.engine
            return _kept(replace(selection, engine=engine), memory, live.generation)

    memory = replace(
        memory, denied={provider.name: provider.denied for provider in registered if provider.denied}
    )
    decision = choose(attempts, registered, choice)
    if decision.provider is not None:
        if decision.engine and decision.provider != selection.name and decision.provider in holders(live.obj):
            # The chosen provider serves the model already, and reports its engine again.
            text = f"kept → {decision.provider} (it serves the model)"
            decision = replace(decision, engine=None, text=text)
        return _chosen(decision, memory, live.generation)
    if reselect and selection.is_selected:
        failed = replace(memory, reselect=selection.reselect)
        return _kept(selection, failed, live.generation, f"; {RESELECT_FAILED}{decision.text}")
    holder = _serving(live.obj, selection.name, registered)
    if holder is not None and holder != selection.name:
        return _handed_back(holder, decision, memory, live.generation)
    return _none(decision, selection, memory, live.generation)


def _has_engine(live: LiveModelDeployment, selection: Selection) -> bool:
    """Check whether an engine is known, or the provider that holds the model will restore it."""
    return bool(live.requested_engine or selection.engine) or _is_held(live, selection)


def _is_held(live: LiveModelDeployment, selection: Selection) -> bool:
    return selection.name in holders(live.obj)


def _can_stay(request: Request, selection: Selection, registered: Sequence[Provider]) -> bool:
    """Check whether the current provider stays, although the selector has not chosen it for this generation.

    Priority, health or a removed registration never change it (contract §5).
    """
    if selection.name is None or selection.name in request.left_out:
        return False
    offered = next((offered for offered in registered if offered.name == selection.name), None)
    if offered is None:
        return selection.condition.get("reason") not in ("NoHealthyProviders", "NoMatchingProvider")
    return not incapabilities(request, offered)


def refused(deployment: Object, provider: str | None, *, is_repeated: bool = False) -> str | None:
    """Return the provider's message if it refused this generation before creating anything, otherwise None.

    The condition counts only if this provider wrote it: it may still be the previous provider's. After a refusal of
    another engine (`is_repeated`), it counts only once the provider's report states the selected engine.
    """
    live = LiveModelDeployment(deployment)
    compatible = live.condition(PROVIDER_COMPATIBLE)
    if (
        provider is None
        or compatible is None
        or compatible.get("status") != "False"
        or compatible.get("observedGeneration") != live.generation
        or _has_created(deployment, provider)
        or not has_reported(deployment, provider, PROVIDER_COMPATIBLE)
        or (is_repeated and not states_engine(deployment, provider))
    ):
        return None
    return str(compatible.get("message", ""))


def _has_created(deployment: Object, provider: str) -> bool:
    """Check whether the provider has created anything.

    The status does not show it while another provider holds the model, because that provider published the fields.
    """
    live = LiveModelDeployment(deployment)
    published = live.provider.get("resourceName") or live.is_true(RESOURCE_CREATED)
    held = holders(deployment)
    return provider in held or bool(published and not held)


def _serving(deployment: Object, chosen: str | None, registered: Sequence[Provider]) -> str | None:
    """Return the provider that holds the model, and serves it until the chosen provider takes over.

    Of several it is the one that reports on the model, because a tenant may have written the other finalizers. It is
    the chosen provider or one that may return.
    """
    reporters = reporting(deployment)
    held = sorted(holders(deployment), key=lambda name: name not in reporters)
    return next((name for name in held if name == chosen or _may_return(name, registered)), None)


def _handed_back(holder: str, decision: Decision, memory: Memory, generation: int) -> Object:
    """Return the fields when every candidate has refused: the model stays with the provider that serves it."""
    message = f"{decision.text}. Provider {holder} keeps the model"
    kept = {"name": holder, "selectedReason": f"kept → {holder} (no other provider takes it)"}
    return _fields(kept, _selected(False, decision.reason, message, generation), memory)


def _chosen(decision: Decision, memory: Memory, generation: int) -> Object:
    message = f"{_named(decision.provider, decision.engine)}{refusals(memory.left_out)}"
    chosen = {"name": decision.provider, "selectedReason": decision.text}
    if decision.engine:
        chosen["engine"] = decision.engine
    return _fields(chosen, _selected(True, decision.reason, message, generation), memory)


def _kept(selection: Selection, memory: Memory, generation: int, note: str = "") -> Object:
    message = f"{_named(selection.name, selection.engine)}{refusals(memory.left_out)}{note}"
    return _fields(_unchanged(selection), _selected(True, "AutoSelected", message, generation), memory)


def _named(provider: str | None, engine: str | None) -> str:
    """Return the beginning of the message: the selected provider, and the engine if it was selected, too."""
    return f"Provider {provider} auto-selected" + (f" with engine {engine}" if engine else "")


def _none(decision: Decision, selection: Selection, memory: Memory, generation: int) -> Object:
    """Return the fields when no provider fits. The current one keeps the model, and reports its own limits."""
    kept = f". Provider {selection.name} keeps the model" if selection.name else ""
    condition = _selected(False, decision.reason, f"{decision.text}{kept}", generation)
    return _fields(_unchanged(selection) if selection.name else None, condition, memory)


def _fields(provider: Mapping[str, Any] | None, condition: Condition, memory: Memory) -> Object:
    """Return all status fields of the selector."""
    chosen = {"provider": dict(provider)} if provider else {}
    return {**chosen, "selection": memory.to_status(), "conditions": [condition]}


def _unchanged(selection: Selection) -> dict[str, Any]:
    """Return the provider fields unchanged. The reason of an explicit choice ended with that choice."""
    reason = selection.reason
    if reason in ("", EXPLICIT_SELECTION):
        reason = f"kept → {selection.name} (selected before)"
    engine = {"engine": selection.engine} if selection.engine else {}
    return {"name": selection.name, "selectedReason": reason, **engine}


def _selected(status: bool, reason: str, message: str, generation: int) -> Condition:
    return condition(PROVIDER_SELECTED, status, reason, shortened(message), generation=generation)
