"""The checks between two steps, and of the end of a history."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.kinds import Object
from simulation.facts import Facts, is_registration
from simulation.invariants import Violation, marks
from simulation.policies import MODELS
from simulation.steps import INVENTED
from simulation.world import CORE, NAMESPACE, component

PATIENCE: Final = 15.0
"""Seconds within which an undisturbed component shows what it has to show."""

PROMPT: Final = 100.0
"""Seconds to the end at most, if nothing was refused for good: a heartbeat, a deletion that waits for a provider
(`--finalizer-timeout`), and the start of the pods."""

LASTING: Final = frozenset({"strip-finalizers", "deny-finalizers", "deny-removal", "rewrite-labels"})
"""Policies whose refusals are tried again after up to five minutes."""

HISTORY: Final = ("observedGeneration", "selection", "conditions", "provider", "selector", "start")
"""Fields of a status that depend on what has happened, and when, so that two runs end with others."""


class Sampler:
    """Looks at the world between two steps."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._dead_since: dict[str, float] = {}
        self._unlisted_since: dict[str, float] = {}
        self._held_since: dict[str, float] = {}
        self._shown_at: dict[tuple[str, str], float] = {}
        """When a status last had the refusal of a component, by component and name of the model."""

    def look(self) -> Iterator[Violation]:
        """Yield the invariants that are broken now."""
        now = self._facts.world.loop.time()
        for model in self._facts.models():
            yield from self._stale(model, now)
            yield from self._held(model, now)
        yield from self._unlisted(now)
        yield from self._shown(now)

    def _calm(self, provider: str, now: float) -> bool:
        world = self._facts.world
        return provider in world.providers and now - world.calm_since(component(provider)) > PATIENCE

    def _stale(self, model: Object, now: float) -> Iterator[Violation]:
        name, status = model["metadata"]["name"], model.get("status") or {}
        ready = _conditions(model).get(reasons.READY) or {}
        if ready.get("status") != "True" or self._facts.serving(name):
            self._dead_since.pop(name, None)
            return
        since = self._dead_since.setdefault(name, now)
        operators = self._facts.world.operators
        serving = [
            provider
            for provider, operator in operators.items()
            if any(obj["metadata"]["name"] == name for obj in operator.objects())
        ] or [str((status.get("provider") or {}).get("name"))]
        if now - since > PATIENCE and any(
            self._calm(provider, now) and operators[provider].down_until < now - PATIENCE
            for provider in serving
            if provider in operators and f"unlisted {provider}" not in self._facts.world.server.policies
        ):
            yield Violation("stale", now, f"{name} is Ready, and nothing serves since {since:.1f} s")

    def _held(self, model: Object, now: float) -> Iterator[Violation]:
        meta = model["metadata"]
        if not meta.get("deletionTimestamp") or meta["finalizers"] != [INVENTED]:
            self._held_since.pop(meta["name"], None)
            return
        since = self._held_since.setdefault(meta["name"], now)
        world = self._facts.world
        if now - max(since, world.calm_since(CORE)) > PATIENCE and not world.server.policies:
            yield Violation("invented", now, f"{meta['name']} waits for {INVENTED} since {since:.1f} s")

    def _unlisted(self, now: float) -> Iterator[Violation]:
        world = self._facts.world
        for provider in world.providers:
            if f"unlisted {provider}" not in world.server.policies:
                self._unlisted_since.pop(provider, None)
                continue
            since = self._unlisted_since.setdefault(provider, now)
            config: Any = world.server.store.get((names.GROUP, names.PROVIDER_CONFIGS), ("", provider)) or {}
            is_ready = (config.get("status") or {}).get("ready")
            if now - since > PATIENCE and is_ready and self._calm(provider, now):
                yield Violation("unlisted", now, f"{provider} is registered as ready since {since:.1f} s")

    def _shown(self, now: float) -> Iterator[Violation]:
        facts = self._facts
        for (by, name), refusals in list(facts.refused.items()):
            recent = [item for item in refusals if item[0] > now - 2 * PATIENCE]
            model = facts.world.server.store.get(MODELS, (NAMESPACE, name))
            text = refusals[-1][1]
            if model is None or text[-40:] in str(model.get("status")):
                self._shown_at[by, name] = now
            lasting = len(recent) > 2 and recent[-1][0] - recent[0][0] > PATIENCE / 2
            if not lasting or now - facts.world.calm_since(by) < 2 * PATIENCE:
                continue
            if self._shown_at.get((by, name), -1.0) >= recent[0][0]:
                continue
            told = any(
                write.place.storage[1] == "events"
                and write.body["regarding"]["name"] == name
                and write.body["type"] == "Warning"
                and write.at > recent[0][0] - 300
                and text[-40:] in write.body["note"]
                for write in facts.writes
            )
            if not told:
                yield Violation("shown", now, f"{by} is refused at {name}, and nobody says so: {text}")


def _conditions(model: Object) -> dict[str, Object]:
    return {item["type"]: item for item in (model.get("status") or {}).get("conditions") or ()}


def settled(facts: Facts, model: Object) -> str:
    """Return why a model has not reached its end, empty if it has."""
    meta, status = model["metadata"], model.get("status") or {}
    named = (model["spec"].get("provider") or {}).get("name")
    provider = (status.get("provider") or {}).get("name")
    if meta.get("deletionTimestamp"):
        return "it is being deleted"
    ready = _conditions(model).get(reasons.READY) or {}
    if provider not in facts.world.providers:
        return f"provider {provider}: {status.get('message')}"
    if facts.expected(provider, model, meta["generation"]) is None:
        # Another provider may keep serving it.
        return (
            ""
            if status.get("phase") in ("Failed", "Running")
            else f"cannot be served, and is {status.get('phase')}"
        )
    if status.get("phase") != "Running" and ready.get("reason") != "ScaledToZero":
        return f"phase {status.get('phase')}: {status.get('message')}"
    if named and named != provider:
        return f"provider {provider} instead of {named}"
    if status.get("observedGeneration") != meta["generation"]:
        seen = status.get("observedGeneration")
        return f"observedGeneration {seen} of {meta['generation']}: {status.get('message')}"
    late = [
        type_
        for type_, item in _conditions(model).items()
        if item.get("observedGeneration") != meta["generation"]
    ]
    if late:
        return f"conditions of an earlier generation: {late}"
    if names.provider_finalizer(provider) not in (meta.get("finalizers") or ()):
        return f"finalizers {meta.get('finalizers')}"
    return ""


def ends(facts: Facts) -> list[str]:
    """Return why the world has not come to its end, one line for each obstacle."""
    unsettled = [
        f"{model['metadata']['name']}: {why}" for model in facts.models() if (why := settled(facts, model))
    ]
    deleting = [
        f"{obj['metadata']['name']} of {provider} is being deleted"
        for provider, operator in facts.world.operators.items()
        for obj in operator.objects()
        if obj["metadata"].get("deletionTimestamp")
    ]
    return [*unsettled, *deleting, *_unregistered(facts)]


def _unregistered(facts: Facts) -> list[str]:
    """Return one line for each provider that is about to register again, because the selector then acts on that.

    A provider notices the deletion of its registration with its next heartbeat.
    """
    configs = facts.world.server.store.all((names.GROUP, names.PROVIDER_CONFIGS))
    ready = {obj["metadata"]["name"] for obj in configs if (obj.get("status") or {}).get("ready")}
    return [f"{name} is not registered as ready" for name in facts.world.providers if name not in ready]


def prompt(facts: Facts, now: float, seconds: float) -> Iterator[Violation]:
    """Yield a violation if the end came late, although no policy has refused anything for good."""
    if seconds > PROMPT and not facts.actions.policies & LASTING:
        yield Violation("prompt", now, f"the end came {seconds:.0f} s after the last fault")


def final(facts: Facts, now: float) -> Iterator[Violation]:
    """Yield the invariants that the end breaks."""
    models = {model["metadata"]["name"]: model for model in facts.models()}
    for provider, operator in facts.world.operators.items():
        for obj in operator.objects():
            meta = obj["metadata"]
            if names.MANAGED_BY_LABEL not in (meta.get("labels") or {}):
                continue
            model = models.get(meta["name"])
            if model is None:
                yield Violation("gone", now, f"{provider}: {meta['name']} is left, without a model")
                continue
            yield from _of_model(facts, provider, obj, model, now)
    for name, model in models.items():
        chosen = ((model.get("status") or {}).get("provider") or {}).get("name")
        if facts.expected(str(chosen), model, model["metadata"]["generation"]) is None:
            continue
        for other in set(facts.world.providers) - {chosen}:
            managers = {
                entry.get("manager")
                for entry in model["metadata"].get("managedFields") or ()
                if entry.get("subresource") == "status"
            }
            if names.provider_manager(other) in managers:
                yield Violation("alone", now, f"{other} owns fields of {name}")
            if names.provider_finalizer(other) in (model["metadata"].get("finalizers") or ()):
                yield Violation("alone", now, f"{other} has a finalizer on {name}")


def _of_model(facts: Facts, provider: str, obj: Object, model: Object, now: float) -> Iterator[Violation]:
    meta, uid = obj["metadata"], model["metadata"]["uid"]
    chosen = ((model.get("status") or {}).get("provider") or {}).get("name")
    if chosen != provider and facts.expected(str(chosen), model, model["metadata"]["generation"]) is not None:
        yield Violation("alone", now, f"{provider} has an object of {meta['name']}, which {chosen} serves")
    missing = marks(meta)
    if uid not in {owner["uid"] for owner in meta.get("ownerReferences") or ()}:
        missing.append("owner reference to the model")
    if (meta.get("annotations") or {}).get(names.OWNER_UID_ANNOTATION) != uid:
        missing.append("uid of the model")
    if missing:
        yield Violation("records", now, f"{provider}: {meta['name']} lacks {', '.join(missing)}")


def quiet(facts: Facts, since: float) -> Iterator[Violation]:
    """Yield the writes after a time in which nothing should be written."""
    for write in facts.writes:
        if write.at >= since and not is_registration(write):
            text = f"{write.by} {write.method} {write.place.storage[1]} {write.place.key[1]}"
            yield Violation("quiet", write.at, text)


def state(facts: Facts) -> dict[str, Any]:
    """Return the end, as far as it may not depend on how it came about."""
    seen: dict[str, Any] = {}
    for model in facts.models():
        status = model.get("status") or {}
        kept = {name: value for name, value in status.items() if name not in HISTORY}
        conditions = {
            type_: (item["status"], item["reason"])
            for type_, item in _conditions(model).items()
            if type_ not in (reasons.PROVIDER_SELECTED, reasons.PROVIDER_HEALTHY)
        }
        provider = {
            name: text for name, text in (status.get("provider") or {}).items() if name != "selectedReason"
        }
        # Admission that others have taken back is named until the object is written again (contract §4).
        kept["message"] = str(kept.get("message")).partition("; the cluster's admission changed")[0]
        seen[f"model {model['metadata']['name']}"] = {**kept, "conditions": conditions, "provider": provider}
    for provider_name, operator in facts.world.operators.items():
        for obj in operator.objects():
            if names.MANAGED_BY_LABEL in (obj["metadata"].get("labels") or {}):
                seen[f"{provider_name} {obj['metadata']['name']}"] = copy.deepcopy(operator.workload(obj))
    return seen
