"""A mutating webhook changes what a provider registers: the registration says so, and is as sent after its end."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Final

import pytest

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS, Object
from kubefoundry_sdk.testing._server.requests import Target
from simulation.cluster import Cluster, cluster
from simulation.runner import PROVIDERS
from simulation.status_webhook import PROVIDER

BEATS: Final = 130.0
"""Seconds in which a provider reports at least twice."""
STORAGE: Final = (PROVIDER_CONFIGS.group, PROVIDER_CONFIGS.plural)


def _without_entry(obj: Object) -> None:
    """Remove the provider's entry of what it applied outside of the status."""
    meta, manager = obj["metadata"], names.provider_manager(PROVIDERS[0])
    meta["managedFields"] = [
        entry
        for entry in meta["managedFields"]
        if entry["manager"] != manager or entry.get("subresource") == "status"
    ]


CHANGES: Final[dict[str, tuple[str, Callable[[Object], object], str]]] = {
    "other capability": (
        "",
        lambda obj: obj["spec"]["capabilities"].update(gpuSupport=False),
        "spec.capabilities",
    ),
    "no capabilities": ("", lambda obj: obj["spec"].pop("capabilities"), "spec.capabilities"),
    "other rules": (
        "",
        lambda obj: obj["spec"].update(selectionRules=[{"condition": "true", "priority": 1000}]),
        "spec.selectionRules",
    ),
    "no rules": ("", lambda obj: obj["spec"].update(selectionRules=[]), "spec.selectionRules"),
    "no annotation": (
        "",
        lambda obj: obj["metadata"]["annotations"].pop(names.CONTRACT_ANNOTATION),
        f"annotation {names.CONTRACT_ANNOTATION}",
    ),
    "no entry": ("", _without_entry, "metadata.managedFields"),
    "not ready": ("status", lambda obj: obj["status"].update(ready=False), "status.ready"),
    "no version": ("status", lambda obj: obj["status"].pop("version"), "status.version"),
}
"""The subresource, the change, and the part that is named."""


def registration(it: Cluster) -> Object:
    """Return the registration without times, owners and generations."""
    live = it.world.server.store.get(STORAGE, ("", PROVIDERS[0]))
    assert live is not None
    meta = {"annotations": live["metadata"].get("annotations")}
    status = it.status(PROVIDER_CONFIGS, PROVIDERS[0])
    for item in status["conditions"]:
        item.pop("observedGeneration", None)
    return {"metadata": meta, "spec": live["spec"], "status": status}


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CHANGES)
def test_changed_registration_is_reported_and_heals(name: str) -> None:
    subresource, change, part = CHANGES[name]

    def webhook(agent: str, target: Target, new: Object) -> Object:
        if (agent, target.resource.storage, target.subresource) == (PROVIDER, STORAGE, subresource):
            new = copy.deepcopy(new)
            change(new)
        return new

    with cluster(name) as it:

        async def run() -> tuple[Object, list[str], Object]:
            await it.start(webhook)
            await it.loop.advance(BEATS)
            changed, notes = registration(it), it.notes("WriteRejected")
            it.world.server.mutations.clear()
            await it.loop.advance(BEATS)
            return changed, notes, registration(it)

        changed, notes, healed = it.play(run())

    with cluster(f"{name} calm") as it:

        async def calm() -> Object:
            await it.start()
            await it.loop.advance(2 * BEATS)
            return registration(it)

        expected = it.play(calm())

    applied = find(changed["status"]["conditions"], "RegistrationApplied") or {}
    assert (applied.get("status"), applied.get("reason")) == ("False", "ChangedByAdmission")
    assert f"{part} was not stored as sent" in str(applied.get("message"))
    assert [note for note in notes if PROVIDER in note and f"{part} was not stored as sent" in note] != []
    assert healed == expected
