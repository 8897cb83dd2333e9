"""The upstream objects of a model, and the moment from which the controllers change nothing more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_cli.providers import installed
from kubefoundry_cli.upstream import flattened
from kubefoundry_sdk._api import conditions, reasons
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.handover import holders, states
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.contract import Provider, Rendered
from kubefoundry_sdk._provider.write import foreign_values, manifest
from kubefoundry_selector.candidate import Provider as Candidate
from kubefoundry_selector.candidate import provider as candidate
from kubefoundry_selector.decision import decide
from support.kinds import UPSTREAM

KINDS: Final = {**UPSTREAM, "direct": DEPLOYMENTS}
PROVIDER_OF: Final = {kind.kind: name for name, kind in KINDS.items()}
PASSING: Final = ("WaitingForCleanup", "Recreating", "ApplyFailed")
"""Reasons of `ResourceCreated` after which the provider goes on."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """An upstream object: its uid, the values that were applied last by path, and its content."""

    uid: str
    applied: Mapping[tuple[str, ...], Any]
    content: Any


async def registered(api: Client) -> list[Candidate]:
    configs, _ = await api.list(PROVIDER_CONFIGS)
    return [candidate(config) for config in configs]


async def upstream_of(api: Client, obj: Object | None, name: str, namespace: str) -> dict[str, Upstream]:
    """The upstream objects that were created for the model, by kind."""
    found = {}
    for provider_name, kind in KINDS.items():
        provider = installed()[provider_name]
        try:
            live = await api.get(kind, name, namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            continue
        if obj is None or manifest.owner_uid(live) != obj["metadata"]["uid"]:
            continue
        applied = flattened(provider, [{**_applied(provider, live), "kind": kind.kind}], flags=True)
        content = {key: value for key, value in live.items() if key not in ("metadata", "status")}
        found[kind.kind] = Upstream(live["metadata"]["uid"], applied, content)
    return found


def _applied(provider: Provider, live: Object) -> Object:
    """The manifest that was applied last. Where others decide once the object exists, an apply keeps their values,
    and the record has the rendered ones."""
    record = manifest.applied(live)
    assert record is not None
    found = deepcopy(record.manifest)
    foreign_values.keep(provider, found, live, None, Rendered(found))
    return found


def settled(obj: Object, known: Sequence[Candidate]) -> bool:
    """Whether core, selector and provider have nothing more to write because of this generation."""
    meta, status = obj["metadata"], obj.get("status") or {}
    generation = meta["generation"]

    def current(type_: str) -> Mapping[str, Any]:
        found = find(status.get("conditions"), type_) or {}
        return found if found.get("observedGeneration") == generation else {}

    selected = current(reasons.PROVIDER_SELECTED)
    named = LiveModelDeployment(obj).requested_provider
    if not current(reasons.VALIDATED) or not selected or (not named and _undecided(obj, known)):
        return False
    chosen = (status.get("provider") or {}).get("name")
    if not chosen:
        return True
    compatible, created = current(reasons.PROVIDER_COMPATIBLE), current(reasons.RESOURCE_CREATED)
    # Until the chosen provider answers, it may share some values with the provider before it.
    if not compatible or not states(obj, chosen, reasons.PROVIDER_COMPATIBLE):
        return False
    if compatible["status"] == "False":
        return True
    if not created or created["reason"] in PASSING:
        return False
    return created["status"] == "False" or holders(obj) == [chosen]


def _undecided(obj: Object, known: Sequence[Candidate]) -> bool:
    """Whether the selector would write another selection."""
    decided = decide(obj, known)
    if decided is None:
        return False
    status = obj["status"]
    [wanted] = decided["conditions"]
    written = find(status.get("conditions"), reasons.PROVIDER_SELECTED) or {}
    live = {key: written.get(key) for key in wanted}
    name = (decided.get("provider") or {}).get("name")
    return live != wanted or (status.get("provider") or {}).get("name") != name


def is_accepted(obj: Object) -> bool:
    """Whether the provider has accepted this generation and stored its objects."""
    found, generation = (obj.get("status") or {}).get("conditions"), obj["metadata"]["generation"]
    return all(
        conditions.is_true(found, type_, generation=generation)
        for type_ in (reasons.PROVIDER_COMPATIBLE, reasons.RESOURCE_CREATED)
    )
