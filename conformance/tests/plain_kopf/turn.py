"""One turn for one ModelDeployment, in the order of contract §4. Each turn reads the objects again."""

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
"""At most REPAIRS repairs of drift in WITHIN seconds. A refused write is retried after LATER seconds."""


@dataclass(slots=True)
class Memory:
    """Start times of waits, times of repairs, and consecutive failures of one ModelDeployment."""

    since: dict[str, float] = field(default_factory=dict)
    repairs: deque[float] = field(default_factory=deque)
    failures: int = 0
    unseen: tuple[int, object] | None = None
    """After an edit: the generation that served before it, and the Widget's status at that time."""

    def rest(self, wait: str, seconds: float) -> float:
        """Return the remaining seconds of a wait, which begins with the first call."""
        return self.since.setdefault(wait, time.monotonic()) + seconds - time.monotonic()


@dataclass(slots=True)
class Turn(ModelDeployment):
    """A turn.

    Attributes:
        crd: The CRD of Widgets, None if it is not installed.
        timeout: The longest wait for others, in seconds.
        memory: State of earlier turns.
        existing: The Widget with the ModelDeployment's name, or None.
    """

    crd: Object | None
    timeout: float
    memory: Memory
    existing: Object | None

    async def run(self) -> float | None:
        """Run the turn. Return the seconds until the next one, None if an event will request it."""
        meta, existing = self.live["metadata"], self.existing
        ours = existing if existing and upstream.made_for(existing, meta["uid"]) else None
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
        """Run steps 9 to 19. Return why no Widget was written, and the Widget that is ours now."""
        if stop := self.unsupported() or self.name_taken(ours):
            return stop, ours
        manifest = upstream.dressed(self.live, ours, NAME)
        try:
            if self.annotation("dry-run") == "true":
                return await self.dry_run(manifest), ours
            if not ours and (stop := await self.wait_for_others(manifest)):
                return stop, None
            await self.own(hold=True)
            if ours and (stop := await self.recreate(manifest, ours)):
                return stop, ours
            return None, await self.apply_changes(manifest, ours)
        except Refused as error:
            if error.final:
                return Stop("ApplyRejected", str(error), LATER), ours
            self.memory.failures += 1
            # A single failure is retried without a report.
            if self.memory.failures < 2:
                raise
            delay = error.wait or min(0.2 * 2**self.memory.failures, LATER)
            return Stop("ApplyFailed", str(error), delay), ours

    def unsupported(self) -> Stop | None:
        """Check spec and CRD (steps 9 to 11)."""
        if problems := list(widget.refusals(self.live["spec"])):
            return Stop("Unsupported", ". ".join(problems))
        if self.crd is None:
            return Stop("CRDNotInstalled", f"CRD {widget.CRD} is not installed: install Widgets")
        if lacks := widget.missing(self.crd):
            return Stop("UnsupportedSchema", f"CRD {widget.CRD} lacks {', '.join(lacks)}: upgrade Widgets")
        return None

    def name_taken(self, ours: Object | None) -> Stop | None:
        """Check whether a Widget of that name is being deleted, or belongs to somebody else."""
        existing, name = self.existing, f"Widget '{self.live['metadata']['name']}'"
        if existing and (existing["metadata"].get("deletionTimestamp") or self.orphaned(existing)):
            return Stop("Recreating", f"{name} is being deleted; it will be recreated once it is gone")
        if existing and not ours:
            message = f"{name} was not made for this ModelDeployment, so it is left unchanged: delete it"
            return Stop("NameConflict", message)
        return None

    async def wait_for_others(self, manifest: Object) -> Stop | None:
        """Try the Widget by a dry run, and wait for the clean-up of other providers until the time-out."""
        if not (others := self.other_holders):
            return None
        await self.apply(manifest, None, dry_run=True)
        if (rest := self.memory.rest("others", self.timeout)) > 0:
            message = f"Waiting until {', '.join(others)} is off; the Widget is accepted"
            return Stop("WaitingForCleanup", message, rest)
        await self.event("Warning", "FinalizerTimeout", f"Not waited for any longer: {', '.join(others)}")
        return None

    async def recreate(self, manifest: Object, ours: Object) -> Stop | None:
        """Delete the Widget of another model, once a dry run has accepted the new one."""
        if not (changed := upstream.identity_changed(self.live, ours)):
            return None
        await self.apply(manifest, ours, dry_run=True)
        await self.api.delete(self.widget_path, ours["metadata"]["uid"])
        return Stop("Recreating", f"{', '.join(changed)} changed: the Widget is made again")

    async def apply_changes(self, manifest: Object, ours: Object | None) -> Object:
        """Apply the Widget if it differs, and return it. Drift is repaired REPAIRS times."""
        if ours and not (changed := upstream.differences(manifest, ours)):
            return ours
        if ours and upstream.recorded(ours) == json.loads(
            manifest["metadata"]["annotations"][upstream.APPLIED]
        ):
            repairs, moment = self.memory.repairs, time.monotonic()
            while repairs and repairs[0] < moment - WITHIN:
                repairs.popleft()
            if len(repairs) >= REPAIRS:
                return ours
            repairs.append(moment)
            await self.event(
                "Warning", "DriftDetected", f"Put back what others have changed: {', '.join(changed)}"
            )
        if ours and self.memory.unseen is None:
            self.memory.unseen = (upstream.applied_generation(ours), ours.get("status"))
        applied = await self.apply(manifest, ours)
        self.memory.failures = 0
        return applied

    async def apply(self, manifest: Object, ours: Object | None, *, dry_run: bool = False) -> Object:
        """Apply the Widget if it is still the one that the turn has read.

        An apply with a resourceVersion that no object has can only create.
        """
        version = (
            {key: ours["metadata"][key] for key in ("uid", "resourceVersion")}
            if ours
            else {"resourceVersion": "1"}
        )
        body = {**manifest, "metadata": {**manifest["metadata"], **version}}
        return await self.api.apply(self.widget_path, body, force=ours is not None, dry_run=dry_run)

    async def dry_run(self, manifest: Object) -> Stop:
        accepted, message = True, "The API server accepts it"
        try:
            await self.apply(manifest, self.existing, dry_run=True)
        except Refused as error:
            if not error.final:
                raise
            accepted, message = False, str(error)
        result = {"accepted": accepted, "message": message, "objects": [manifest]}
        await self.own(hold=self.held, result=json.dumps(result))
        return Stop("DryRun", message)

    async def leave(self, mine: bool) -> float | None:
        """Run step 3, which precedes the pause and all errors. An orphaned Widget stays."""
        meta, existing = self.live["metadata"], self.existing
        if not self.held:
            return None
        owned_by_it = existing and upstream.owned_by(existing, meta["uid"])
        if not owned_by_it or not existing or "orphan" in meta["finalizers"]:
            await self.unhold()
            return None
        named = f"Widget {meta['namespace']}/{meta['name']}"
        if not existing["metadata"].get("deletionTimestamp"):
            await self.api.delete(self.widget_path, existing["metadata"]["uid"])
        if mine:
            stop = Stop("Terminating", f"Waiting until {named} is gone")
            await self.publish(None, stop, decisions(meta["generation"], stop, ""))
        if (rest := self.memory.rest("deletion", self.timeout)) > 0:
            return rest
        await self.event("Warning", "FinalizerTimeout", f"{named} is still there and is left behind")
        await self.unhold()
        return None

    async def let_go(self, ours: Object | None) -> float | None:
        """Run step 6: give up the Widget once the chosen provider has accepted the ModelDeployment."""
        meta = self.live["metadata"]
        chosen = ((self.live.get("status") or {}).get("provider") or {}).get("name")
        if ours and not (self.is_accepted_by(chosen) and self.annotation("dry-run") != "true"):
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

    def is_accepted_by(self, chosen: str | None) -> bool:
        """Check whether the chosen provider has accepted the current generation."""
        acceptance = {"ProviderCompatible", "ResourceCreated"}
        conditions = {item["type"]: item for item in (self.live.get("status") or {}).get("conditions") or ()}
        compatible, created = (
            conditions.get(type_, {}) for type_ in ("ProviderCompatible", "ResourceCreated")
        )
        generation = self.live["metadata"]["generation"]
        if any(item.get("observedGeneration") != generation for item in (compatible, created)):
            return False
        own_types = {item["type"] for item in owned(self.live, MANAGER).get("conditions") or ()}
        # Equal conditions of another manager are no acceptance.
        written_by_chosen = bool(chosen) and states(self.live, f"{chosen}-provider", acceptance)
        if acceptance & own_types or not written_by_chosen or compatible.get("status") != "True":
            return False
        return bool(created.get("status") == "True" or created.get("reason") == "WaitingForCleanup")

    async def observe(self, ours: Object | None, *, decided: bool = True) -> None:
        """Run step 20 alone. `decided`: whether our decision about an earlier generation stays."""
        if ours:
            kept = owned(self.live, MANAGER).get("conditions", []) if decided else []
            await self.publish(ours, None, [item for item in kept if item["type"] != "Ready"])

    async def publish(self, ours: Object | None, stop: Stop | None, decided: list[Object]) -> None:
        """Run step 21. While another provider serves, only the decision is ours to report."""
        meta = self.live["metadata"]
        fields: Object = {"conditions": decided}
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
            fields = serving(meta["name"], served, meta["generation"], stop, seen)
            fields["conditions"] = [*decided, *fields["conditions"]]
        before = self.live.get("status") or {}
        if await self.write(fields):
            for event in transitions(before, fields):
                await self.event(*event)

    def is_unseen(self, ours: Object) -> bool:
        """Check whether the Widget's status is older than the last edit. The status itself names no generation."""
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

    def orphaned(self, existing: Object) -> bool:
        """Check whether an earlier ModelDeployment of this name owns the Widget, which garbage collection deletes."""
        owner, meta = upstream.owner(existing), self.live["metadata"]
        return bool(owner and owner.get("name") == meta["name"] and owner.get("uid") != meta["uid"])
