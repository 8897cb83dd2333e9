"""One turn for one ModelDeployment, in the order of contract §4. It reads what there is, and keeps no copy."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass, field

import upstream_objects as upstream
import widget
from api_server import Object, Refused
from model_deployment import MANAGER, NAME, ModelDeployment
from report import Stop, decisions, owned, serving, states, transitions

REPAIRS, WITHIN, LATER = 5, 600.0, 300.0
"""Drift is put back so often in so many seconds; what was refused is tried again after LATER."""


@dataclass(slots=True)
class Memory:
    """Of one ModelDeployment: since when things are waited for, when drift was put back, failures in a row."""

    since: dict[str, float] = field(default_factory=dict)
    repairs: deque[float] = field(default_factory=deque)
    failures: int = 0
    unseen: tuple[int, object] | None = None
    """After an edit: the generation that served before it, and the Widget's status at that time."""

    def rest(self, what: str, seconds: float) -> float:
        """Seconds that are left of a time-out, which begins with the first call."""
        return self.since.setdefault(what, time.monotonic()) + seconds - time.monotonic()


@dataclass(slots=True)
class Turn(ModelDeployment):
    """crd: None where it is not installed. timeout: seconds that others get. there: the Widget of that name."""

    crd: Object | None
    timeout: float
    memory: Memory
    there: Object | None

    async def run(self) -> float | None:
        """Seconds until another turn is due, None where an event will say so."""
        meta, there = self.live["metadata"], self.there
        ours = there if there and upstream.made_for(there, meta["uid"]) else None
        ours = ours if ours and upstream.written_by(ours, MANAGER) else None
        status = self.live.get("status") or {}
        mine = (status.get("provider") or {}).get("name") == NAME
        if meta.get("deletionTimestamp"):
            return await self.leave(mine)
        if ours and mine and not self.held:
            await self.own(hold=True)
        if self.annotation("reconcile-paused") == "true":
            if mine and (kept := owned(self.live, MANAGER)):
                await self.write({**kept, "message": "reconciliation paused"})
            return None
        if not mine:
            return await self.let_go(ours)
        if not self.valid:
            await self.observe(ours)
            return None
        stop, ours = await self.attempt(ours)
        if stop is None or stop.reason != "DryRun":
            await self.own(hold=self.held)
        overrides = widget.at(self.live["spec"], "provider.overrides", {})
        unknown = sorted(overrides) if isinstance(overrides, dict) else []
        ignored = f"Ignored unknown provider.overrides: {', '.join(unknown)}" if unknown else ""
        await self.publish(ours, stop, decisions(meta["generation"], stop, ignored))
        return stop.again if stop else None

    async def attempt(self, ours: Object | None) -> tuple[Stop | None, Object | None]:
        """Steps 9 to 19: why the writing ended, and the Widget that is ours now."""
        meta = self.live["metadata"]
        if problems := list(widget.refusals(self.live["spec"])):
            return Stop("Unsupported", ". ".join(problems)), ours
        if self.crd is None:
            return Stop("CRDNotInstalled", f"CRD {widget.CRD} is not installed: install Widgets"), ours
        if lacks := widget.missing(self.crd):
            return Stop(
                "UnsupportedSchema", f"CRD {widget.CRD} lacks {', '.join(lacks)}: upgrade Widgets"
            ), ours
        there, named = self.there, f"Widget '{meta['name']}'"
        if there and (there["metadata"].get("deletionTimestamp") or self.orphaned(there)):
            return Stop("Recreating", f"{named} is being deleted; it will be recreated once it is gone"), ours
        if there and not ours:
            message = f"{named} was not made for this ModelDeployment, so it is left unchanged: delete it"
            return Stop("NameConflict", message), None
        wanted = upstream.dressed(self.live, ours, NAME)
        try:
            if self.annotation("dry-run") == "true":
                return await self.dry_run(wanted), ours
            if not ours and (others := self.other_holders):
                await self.apply(wanted, None, dry_run=True)
                if (rest := self.memory.rest("others", self.timeout)) > 0:
                    message = f"Waiting until {', '.join(others)} is off; the Widget is accepted"
                    return Stop("WaitingForCleanup", message, rest), None
                await self.event(
                    "Warning", "FinalizerTimeout", f"Not waited for any longer: {', '.join(others)}"
                )
            await self.own(hold=True)
            if ours and (changed := upstream.identity_changed(self.live, ours)):
                await self.apply(wanted, ours, dry_run=True)
                await self.api.delete(self.widget_path, ours["metadata"]["uid"])
                return Stop("Recreating", f"{', '.join(changed)} changed: the Widget is made again"), ours
            return None, await self.written(wanted, ours)
        except Refused as error:
            if error.final:
                return Stop("ApplyRejected", str(error), LATER), ours
            self.memory.failures += 1
            if self.memory.failures < 2:
                raise
            return Stop(
                "ApplyFailed", str(error), error.wait or min(0.2 * 2**self.memory.failures, LATER)
            ), ours

    async def written(self, wanted: Object, ours: Object | None) -> Object:
        """The Widget, applied where something differs; drift is put back REPAIRS times."""
        if ours and not (found := upstream.differences(wanted, ours)):
            return ours
        if ours and upstream.recorded(ours) == json.loads(
            wanted["metadata"]["annotations"][upstream.APPLIED]
        ):
            repairs, moment = self.memory.repairs, time.monotonic()
            while repairs and repairs[0] < moment - WITHIN:
                repairs.popleft()
            if len(repairs) >= REPAIRS:
                return ours
            repairs.append(moment)
            await self.event(
                "Warning", "DriftDetected", f"Put back what others have changed: {', '.join(found)}"
            )
        if ours and self.memory.unseen is None:
            self.memory.unseen = (upstream.applied_generation(ours), ours.get("status"))
        made = await self.apply(wanted, ours)
        self.memory.failures = 0
        return made

    async def apply(self, wanted: Object, ours: Object | None, *, dry_run: bool = False) -> Object:
        """Names the object that was decided on. An apply with a resourceVersion that no object has only creates."""
        version = (
            {key: ours["metadata"][key] for key in ("uid", "resourceVersion")}
            if ours
            else {"resourceVersion": "1"}
        )
        body = {**wanted, "metadata": {**wanted["metadata"], **version}}
        return await self.api.apply(self.widget_path, body, force=ours is not None, dry_run=dry_run)

    async def dry_run(self, wanted: Object) -> Stop:
        accepted, message = True, "The API server accepts it"
        try:
            await self.apply(wanted, self.there, dry_run=True)
        except Refused as error:
            if not error.final:
                raise
            accepted, message = False, str(error)
        result = {"accepted": accepted, "message": message, "objects": [wanted]}
        await self.own(hold=self.held, result=json.dumps(result))
        return Stop("DryRun", message)

    async def leave(self, mine: bool) -> float | None:
        """Step 3: before pause, and whatever else is wrong. Only the owner counts: an orphan goes on."""
        meta, there = self.live["metadata"], self.there
        if not self.held:
            return None
        owned_by_it = there and upstream.owned_by(there, meta["uid"])
        if not owned_by_it or not there or "orphan" in meta["finalizers"]:
            await self.unhold()
            return None
        named = f"Widget {meta['namespace']}/{meta['name']}"
        if not there["metadata"].get("deletionTimestamp"):
            await self.api.delete(self.widget_path, there["metadata"]["uid"])
        if mine:
            stop = Stop("Terminating", f"Waiting until {named} is gone")
            await self.publish(None, stop, decisions(meta["generation"], stop, ""))
        if (rest := self.memory.rest("deletion", self.timeout)) > 0:
            return rest
        await self.event("Warning", "FinalizerTimeout", f"{named} is still there and is left behind")
        await self.unhold()
        return None

    async def let_go(self, ours: Object | None) -> float | None:
        """Step 6: what serves is given up only once the chosen provider has said that it takes over."""
        meta = self.live["metadata"]
        said = {item["type"]: item for item in (self.live.get("status") or {}).get("conditions") or ()}
        fits, made = said.get("ProviderCompatible", {}), said.get("ResourceCreated", {})
        current = all(one.get("observedGeneration") == meta["generation"] for one in (fits, made))
        takes = made.get("status") == "True" or made.get("reason") == "WaitingForCleanup"
        chosen = ((self.live.get("status") or {}).get("provider") or {}).get("name")
        spoken = not {"ProviderCompatible", "ResourceCreated"} & {
            item["type"] for item in owned(self.live, MANAGER).get("conditions") or ()
        }
        # Equal words of somebody else are no acceptance.
        carried = {"ProviderCompatible", "ResourceCreated"}
        their = bool(chosen) and states(self.live, f"{chosen}-provider", carried)
        over = spoken and their and current and takes and fits.get("status") == "True"
        if ours and not (over and self.annotation("dry-run") != "true"):
            await self.observe(ours, decided=not chosen)
            return None
        if ours:
            if not ours["metadata"].get("deletionTimestamp"):
                await self.api.delete(self.widget_path, ours["metadata"]["uid"])
            if (rest := self.memory.rest("hand-over", self.timeout)) > 0:
                return rest
            named = f"Widget {meta['namespace']}/{meta['name']}"
            await self.event("Warning", "FinalizerTimeout", f"{named} is still there and is left behind")
        if chosen and owned(self.live, MANAGER):
            await self.write({})
        if chosen and self.held:
            await self.unhold()
        return None

    async def observe(self, ours: Object | None, *, decided: bool = True) -> None:
        """Step 20 alone. decided: whether what we have decided of an earlier generation stays."""
        if ours:
            kept = owned(self.live, MANAGER).get("conditions", []) if decided else []
            await self.publish(ours, None, [item for item in kept if item["type"] != "Ready"])

    async def publish(self, ours: Object | None, stop: Stop | None, decided: list[Object]) -> None:
        """Step 21. While another provider serves, only the decision is ours to say."""
        meta = self.live["metadata"]
        wanted: Object = {"conditions": decided}
        if ours or not self.other_holders:
            seen = widget.observed(self.live["spec"], ours) if ours else None
            running = stop is not None and seen is not None and seen.phase == "Running"
            served = (
                upstream.applied_generation(ours)
                if ours and (running or not self.valid)
                else meta["generation"]
            )
            if ours and self.is_unseen(ours):
                served = min(served, self.served_before)
            wanted = serving(meta["name"], served, stop, seen)
            wanted["conditions"] = [*decided, *wanted["conditions"]]
        before = self.live.get("status") or {}
        if await self.write(wanted):
            for event in transitions(before, wanted):
                await self.event(*event)

    def is_unseen(self, ours: Object) -> bool:
        """Whether the Widget's status is older than the last edit: its status names no generation."""
        if self.memory.unseen and self.memory.unseen[1] != ours.get("status"):
            self.memory.unseen = None
            return False
        return bool(self.memory.unseen) or not upstream.reported_since_applied(ours, MANAGER)

    @property
    def served_before(self) -> int:
        """The generation that `Ready` names until the edit is seen."""
        if self.memory.unseen:
            return self.memory.unseen[0]
        status = self.live.get("status") or {}
        return int(status.get("observedGeneration") or 0)

    def orphaned(self, there: Object) -> bool:
        """Whether its owner is an earlier ModelDeployment of this name: the garbage collector takes it away."""
        owner, meta = upstream.owner(there), self.live["metadata"]
        return bool(owner and owner.get("name") == meta["name"] and owner.get("uid") != meta["uid"])
