"""Our selector with one fault, which the environment names: `KUBEFOUNDRY_FAULT`, the rule it breaks, and how; or
`slow`, which breaks none.

Run as a program.

A fault changes what the decision sees of a ModelDeployment or of the providers, or what becomes of the decision.
"""

from __future__ import annotations

import asyncio
import copy
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kubefoundry_sdk.api import names, reasons
from kubefoundry_sdk.api.conditions import condition
from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.runtime import lease, status
from kubefoundry_sdk.runtime.store import Store
from kubefoundry_selector import controller, decision, main, registry
from kubefoundry_selector.candidate import Provider
from kubefoundry_selector.select import Select, select

FAULT: Final = os.environ.get("KUBEFOUNDRY_FAULT", "")

UNSEEN: Final = {
    "SEL-5": reasons.PROVIDER_COMPATIBLE,
    "SEL-2": reasons.VALIDATED,
}
"""By fault the condition that is not seen as it is."""

OWN: Final = "own-format."
"""Before a value that the selector records in a format of its own."""

IGNORED: Final = {"SEL-4": names.RESELECT_ANNOTATION, "SEL-8": names.PAUSED_ANNOTATION}
"""By fault the annotation that is not seen."""


def decide(deployment: Object, registered: Sequence[Provider], choice: Select = select) -> Object | None:
    seen = copy.deepcopy(deployment)
    live = seen.setdefault("status", {})
    conditions = live.setdefault("conditions", [])
    conditions[:] = [one for one in conditions if one["type"] != UNSEEN.get(FAULT)]
    if FAULT == "SEL-2":
        valid = condition(
            reasons.VALIDATED, True, "ValidationPassed", "", generation=seen["metadata"]["generation"]
        )
        conditions.append({**valid})
    if FAULT == "SEL-3" and _down(live, registered):
        live.pop("provider", None)
        conditions[:] = [one for one in conditions if one["type"] != reasons.PROVIDER_SELECTED]
    annotations = seen["metadata"].get("annotations") or {}
    annotations.pop(IGNORED.get(FAULT), None)
    if FAULT == "SEL-4 again" and names.RESELECT_ANNOTATION in annotations:
        annotations[names.RESELECT_ANNOTATION] += ",".join(one.name for one in registered if one.healthy)
    if FAULT == "SEL-11 moved" and "selection" not in live:
        live["selection"] = {"reselect": ""}
    if FAULT == "SEL-11 unrecorded" and live.get("selection"):
        live["selection"]["reselect"] = live["selection"].get("reselect", "").removeprefix(OWN)
    decided = decision.decide(seen, _as_seen(registered), choice)
    if FAULT == "SEL-11 unrecorded" and decided:
        decided["selection"]["reselect"] = OWN + decided["selection"]["reselect"]
    if FAULT == "SEL-7" and decided and any(one["status"] == "False" for one in decided["conditions"]):
        return None
    return None if FAULT == "SEL-9" and decided == {} else decided


status_write: Final = status.write
_known: Final[dict[str, Provider]] = {}


def _as_seen(registered: Sequence[Provider]) -> Sequence[Provider]:
    match FAULT:
        case "SEL-6 ready":
            return [replace(one, not_ready=None) for one in registered]
        case "SEL-6 fresh":
            return [replace(one, heartbeat_fresh=True) for one in registered]
        case "SEL-10":
            engines, modes = frozenset({"vllm"}), frozenset({"aggregated"})
            return [
                replace(one, engines=engines, serving_modes=modes, gpu_support=True) for one in registered
            ]
        case "SEL-6 registered":
            there = {one.name for one in registered if one.not_ready != registry.GONE}
            registered = [one for one in registered if one.name in there]
            gone = [one for name, one in _known.items() if name not in there]
            _known.update((one.name, one) for one in registered)
            return [*registered, *(replace(one, not_ready=None, heartbeat_fresh=True) for one in gone)]
    return registered


def _down(live: Object, registered: Sequence[Provider]) -> bool:
    """Whether the selected provider is not healthy now."""
    chosen = (live.get("provider") or {}).get("name")
    return any(one.name == chosen and not one.healthy for one in registered)


async def _answered_late(
    client: Client, store: Store, kind: Kind, live: Object, fields: Object, *, manager: str
) -> bool:
    written = await status_write(client, store, kind, live, fields, manager=manager)
    await asyncio.sleep(7)
    return written


if __name__ == "__main__":
    vars(controller)["decide"] = decide
    if FAULT == "SEL-1 taken":
        vars(lease)["expired"] = lambda *_: True
    if FAULT == "SEL-1 written":
        sys.argv.append("--leader-elect=false")
    if FAULT == "SEL-1 renewed":
        lease.RENEW, lease.DURATION = 3600.0, 7200.0  # type: ignore[misc]
    if FAULT == "SEL-3":
        vars(controller)["unsettled"] = lambda *_: True
    if FAULT == "slow":
        vars(status)["write"] = _answered_late
    sys.exit(main.run())
