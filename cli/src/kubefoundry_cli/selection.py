"""Predict the selector's decision with its own functions, and the refusals of the installed packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from typing import Any

from kubefoundry_cli import upstream
from kubefoundry_cli.engine import on_engine
from kubefoundry_sdk._api import handover, names, reasons
from kubefoundry_sdk._api.conditions import Condition, condition
from kubefoundry_sdk._api.engine_args import ENGINES
from kubefoundry_sdk._api.engine_choice import effective_engine, engine_for
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.reasons import PROVIDER_SELECTED
from kubefoundry_sdk._api.untrusted import part
from kubefoundry_sdk._api.validation import default
from kubefoundry_sdk._provider.contract import Provider as Package
from kubefoundry_sdk._provider.registration import registration
from kubefoundry_selector.candidate import Provider, Request, provider, request
from kubefoundry_selector.decision import decide
from kubefoundry_selector.engines import choose, requests
from kubefoundry_selector.memory import recall, refuser, refuser_parts
from kubefoundry_selector.select import Decision, select


@dataclass(frozen=True, slots=True)
class Stored:
    """The selection in the status.

    Attributes:
        provider: The name of the selected provider.
        reason: The reason for the selection.
        left_out: Providers that refused this generation before the selected one.
    """

    provider: str
    reason: str
    left_out: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the selection for `-o json`."""
        return asdict(self)

    def __str__(self) -> str:
        left_out = (
            f" (left out, because they refused it: {', '.join(self.left_out)})" if self.left_out else ""
        )
        return f"{self.provider} is selected: {self.reason or 'its status gives no reason'}{left_out}"


def stored(obj: Object) -> Stored | None:
    """Return the cluster's selection for this generation of the spec, None if there is none yet."""
    status, selection_condition = obj.get("status") or {}, _condition(obj)
    name = (status.get("provider") or {}).get("name")
    if not name or selection_condition.get("status") != "True":
        return None
    _, memory = recall(status)
    left_out = tuple(memory.left_out) if memory else ()
    return Stored(str(name), str((status.get("provider") or {}).get("selectedReason") or ""), left_out)


def pending(obj: Object) -> str | None:
    """Return why the selector has selected no provider for this generation of the spec, or what it waits for.

    Return None if a provider is selected, or the selector has not decided yet. The reason comes from the status,
    because only the selector knows how long a provider has been down.
    """
    selection_condition = _condition(obj)
    if selection_condition.get("status") != "False":
        return None
    return recall(obj["status"])[0] or None


def _condition(obj: Object) -> Mapping[str, Any]:
    """Return `ProviderSelected` of this generation, empty if there is none. The object need not be stored."""
    selection_condition = LiveModelDeployment(obj).condition(PROVIDER_SELECTED) or {}
    current = selection_condition.get("observedGeneration") == obj["metadata"].get("generation", 0)
    return selection_condition if current else {}


def settled(
    obj: Object,
    registered: Sequence[Provider],
    packages: Mapping[str, Package],
    left_out: Sequence[str] = (),
) -> tuple[Request, Decision]:
    """Return the selector's final request and its decision.

    If the package of the selected provider refuses the model, that provider is left out, and the selection is
    repeated. A provider whose package is not installed is assumed to accept.

    Args:
        obj: A valid ModelDeployment with defaults.
        registered: The registered providers.
        packages: The installed packages.
        left_out: Providers that are known to have refused the model.
    """
    refusals = {}
    for name in left_out:
        provider, engine = refuser_parts(name)
        refusals[name] = _refusal(packages.get(provider), on_engine(obj, engine))
    while True:
        attempts = requests(obj, refusals)
        decision = choose(attempts, registered, select)
        fitting = [each for each in attempts.all if decision.engine in (None, each.engine)]
        attempt = next(iter(fitting), None) or request(obj)
        refusal = _refusal(packages.get(decision.provider or ""), on_engine(obj, decision.engine))
        if decision.provider is None or not refusal:
            return attempt, decision
        refusals[refuser(decision.provider, decision.engine)] = refusal


def with_denials(obj: Object, registered: Sequence[Provider]) -> Sequence[Provider]:
    """Return the providers with the permissions that the selector found missing, which the status holds."""
    _, memory = recall(obj.get("status") or {})
    if memory is None:
        return registered
    return [replace(offered, denied=memory.denied.get(offered.name, "")) for offered in registered]


def selected(obj: Object, registered: Sequence[Provider], packages: Mapping[str, Package]) -> Decision:
    """Return the selector's final decision, see `settled`."""
    return settled(obj, registered, packages)[1]


def _refusal(package: Package | None, obj: Object) -> str:
    """Return why the package would refuse the model; empty if it accepts or is not installed."""
    return "; ".join(upstream.problems(package, obj, None)) if package else ""


def registered_packages(packages: Mapping[str, Package]) -> list[Provider]:
    """Return the providers of a cluster in which every package is installed and healthy."""
    return [provider({**registration(package), "status": {"ready": True}}) for package in packages.values()]


def with_spec(obj: Object, spec: Object) -> Object:
    """Return the object as the API server stores it after an edit: a new spec increments the generation."""
    same = default(spec) == default(obj["spec"])
    generation = obj["metadata"].get("generation", 0) + (0 if same else 1)
    return {**obj, "metadata": {**obj["metadata"], "generation": generation}, "spec": spec}


def foreseen(obj: Object, registered: Sequence[Provider], packages: Mapping[str, Package]) -> Object:
    """Return the object with the status fields that core and the selector will write for its spec.

    The selector's own `decide` runs until it changes nothing. After each run, the package of the selected provider
    accepts or refuses the model. A pause is ignored: the result is the status after the pause.

    Args:
        obj: A valid ModelDeployment with defaults, and with its present or future generation (`with_spec`).
        registered: The registered providers.
        packages: The installed packages.
    """
    annotations = dict(obj["metadata"].get("annotations") or {})
    annotations.pop(names.PAUSED_ANNOTATION, None)
    obj = {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}
    generation, registered = obj["metadata"]["generation"], with_denials(obj, registered)
    obj = _with_status(obj, {}, _accepted(reasons.VALIDATED, "ValidationPassed", generation))
    if named := LiveModelDeployment(obj).requested_provider:
        supported = {offered.name: offered.engines for offered in registered}
        if named not in supported:
            return obj
        chosen = _accepted(PROVIDER_SELECTED, "ExplicitlySelected", generation)
        engine = engine_for(obj, named, supported)
        is_selected = engine and not LiveModelDeployment(obj).requested_engine
        return _with_status(obj, {"name": named, **({"engine": engine} if is_selected else {})}, chosen)
    # Each round leaves out one more provider, or one of its engines, and the last round changes nothing.
    for _ in range(len(registered) * len(ENGINES) + 3):
        decided = decide(obj, registered)
        if not decided:
            break
        before = obj
        obj = _with_status(obj, decided.get("provider") or {}, *decided["conditions"])
        obj["status"]["selection"] = decided["selection"]
        obj = _answered(obj, packages)
        if obj == before:
            break
    return obj


def selected_provider(obj: Object) -> str | None:
    """Return the name of the provider that is selected for this generation of the spec, None if none is."""
    selection = stored(obj)
    return selection.provider if selection else None


def _accepted(type_: str, reason: str, generation: int) -> Condition:
    return condition(type_, True, reason, "", generation=generation)


def _with_status(obj: Object, chosen: Mapping[str, Any], *written: Condition) -> Object:
    status = obj.get("status") or {}
    types = {entry["type"] for entry in written}
    others = [entry for entry in status.get("conditions") or () if entry.get("type") not in types]
    kept = dict(status.get("provider") or {})
    if chosen:
        kept.pop("engine", None)
        obj = {**obj, "metadata": {**obj["metadata"], "managedFields": _without_engine(obj)}}
    of_provider = {**kept, **chosen}
    return {**obj, "status": {**status, "provider": of_provider, "conditions": [*others, *written]}}


def _without_engine(obj: Object) -> list[Object]:
    """Return the managed fields without owners of the engine, because core or the selector writes it now."""
    entries = deepcopy(obj["metadata"].get("managedFields") or [])
    for entry in entries:
        of_provider = part(entry, "fieldsV1", "f:status").get("f:provider")
        if isinstance(of_provider, dict):
            of_provider.pop("f:engine", None)
    return list(entries)


def _answered(obj: Object, packages: Mapping[str, Package]) -> Object:
    """Return the object with the provider's answer in its status, under that provider's field manager."""
    name = str(obj["status"]["provider"].get("name") or "")
    if name not in packages:
        return obj
    refusal, generation = _refusal(packages[name], obj), obj["metadata"]["generation"]
    answer = condition(
        reasons.PROVIDER_COMPATIBLE,
        not refusal,
        "Unsupported" if refusal else "CompatibilityVerified",
        refusal,
        generation=generation,
    )
    writer = handover.entry(name, reasons.PROVIDER_COMPATIBLE)
    if effective_engine(obj) and not LiveModelDeployment(obj).requested_engine:
        writer["fieldsV1"]["f:status"]["f:provider"] = {"f:engine": {}}
    written = [entry for entry in obj["metadata"].get("managedFields") or () if entry != writer]
    obj = _with_status(obj, {}, answer)
    return {**obj, "metadata": {**obj["metadata"], "managedFields": [writer, *written]}}
