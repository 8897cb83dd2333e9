"""Our selector with a fault, which the variable `KUBEFOUNDRY_FAULT` names. Run as a program.

The name has the rule that the fault breaks, and how. `slow` breaks no rule. A fault changes the ModelDeployment or
the providers before the decision, or the decision itself.
"""

from __future__ import annotations

import asyncio
import copy
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.conditions import condition
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._runtime import lease, status
from kubefoundry_sdk._runtime.store import Store
from kubefoundry_selector import controller, decision, main, registry
from kubefoundry_selector.candidate import Provider
from kubefoundry_selector.select import Select, select

FAULT: Final = os.environ.get("KUBEFOUNDRY_FAULT", "")

UNSEEN: Final = {
    "SEL-5": reasons.PROVIDER_COMPATIBLE,
    "SEL-2": reasons.VALIDATED,
}
"""The condition that is hidden from the decision, by fault."""

OWN: Final = "own-format."
"""Prefix of a value that the selector records in a format of its own."""

IGNORED: Final = {
    "SEL-4": names.RESELECT_ANNOTATION,
    "SEL-8": names.PAUSED_ANNOTATION,
    "SEL-8 late": names.PAUSED_ANNOTATION,
}
"""The annotation that is hidden from the decision, by fault."""


def decide(deployment: Object, registered: Sequence[Provider], choice: Select = select) -> Object | None:
    """Decide with the fault."""
    changed = copy.deepcopy(deployment)
    live = changed.setdefault("status", {})
    conditions = live.setdefault("conditions", [])
    conditions[:] = [item for item in conditions if item["type"] != UNSEEN.get(FAULT)]
    if FAULT == "SEL-2":
        valid = condition(
            reasons.VALIDATED, True, "ValidationPassed", "", generation=changed["metadata"]["generation"]
        )
        conditions.append({**valid})
    if FAULT == "SEL-3" and _down(live, registered):
        live.pop("provider", None)
        conditions[:] = [item for item in conditions if item["type"] != reasons.PROVIDER_SELECTED]
    annotations = changed["metadata"].get("annotations") or {}
    annotations.pop(IGNORED.get(FAULT), None)
    if FAULT == "SEL-4 again" and names.RESELECT_ANNOTATION in annotations:
        healthy = ",".join(provider.name for provider in registered if provider.healthy)
        annotations[names.RESELECT_ANNOTATION] += healthy
    if FAULT == "SEL-11 moved" and "selection" not in live:
        live["selection"] = {"reselect": ""}
    if FAULT == "SEL-11 unrecorded" and live.get("selection"):
        live["selection"]["reselect"] = live["selection"].get("reselect", "").removeprefix(OWN)
    decided = decision.decide(changed, _changed_providers(registered), choice)
    if FAULT == "SEL-11 unrecorded" and decided:
        decided["selection"]["reselect"] = OWN + decided["selection"]["reselect"]
    if FAULT == "SEL-7" and decided and any(item["status"] == "False" for item in decided["conditions"]):
        return None
    return None if FAULT == "SEL-9" and decided == {} else decided


status_write: Final = status.write
_former: Final[dict[str, Provider]] = {}


def _changed_providers(registered: Sequence[Provider]) -> Sequence[Provider]:
    """Return the providers as the fault shows them to the decision."""
    match FAULT:
        case "SEL-6 ready":
            return [replace(provider, not_ready=None) for provider in registered]
        case "SEL-6 fresh":
            return [replace(provider, heartbeat_fresh=True) for provider in registered]
        case "SEL-10":
            engines, modes = frozenset({"vllm"}), frozenset({"aggregated"})
            return [
                replace(provider, engines=engines, serving_modes=modes, gpu_support=True)
                for provider in registered
            ]
        case "SEL-6 registered":
            present = {provider.name for provider in registered if provider.not_ready != registry.GONE}
            registered = [provider for provider in registered if provider.name in present]
            gone = [provider for name, provider in _former.items() if name not in present]
            _former.update((provider.name, provider) for provider in registered)
            return [*registered, *(replace(item, not_ready=None, heartbeat_fresh=True) for item in gone)]
    return registered


def _down(live: Object, registered: Sequence[Provider]) -> bool:
    """Check whether the selected provider is unhealthy."""
    chosen = (live.get("provider") or {}).get("name")
    return any(provider.name == chosen and not provider.healthy for provider in registered)


async def _answered_late(
    client: Client, store: Store, kind: Kind, live: Object, fields: Object, *, manager: str
) -> bool:
    written = await status_write(client, store, kind, live, fields, manager=manager)
    if written:
        await asyncio.sleep(7)
    return written


async def _written_late_if_paused(
    client: Client, store: Store, kind: Kind, live: Object, fields: Object, *, manager: str
) -> bool:
    if names.PAUSED_ANNOTATION in (live["metadata"].get("annotations") or {}):
        await asyncio.sleep(1)
    return await status_write(client, store, kind, live, fields, manager=manager)


if __name__ == "__main__":
    vars(controller)["decide"] = decide
    if FAULT == "SEL-1 taken":
        vars(lease)["expired"] = lambda *_: True
    if FAULT == "SEL-1 written":
        sys.argv.append("--leader-elect=false")
    if FAULT == "SEL-1 renewed":
        lease.RENEW, lease.DURATION = 3600.0, 7200.0  # type: ignore[misc]
    if FAULT == "SEL-3":
        vars(controller)["is_undecided"] = lambda *_: True
    if FAULT == "SEL-8 late":
        vars(controller)["write_status"] = _written_late_if_paused
    if FAULT == "slow":
        vars(controller)["write_status"] = _answered_late
    sys.exit(main.run_selector())
