"""OBS-10: `Ready` names a generation only once its own pods serve."""

from __future__ import annotations

from functools import partial
from typing import Final

from kubefoundry_conformance.check import Finding, Skipped
from kubefoundry_conformance.cluster.deployments import Place
from kubefoundry_conformance.cluster.refusing import CHANGES, refuse_writes
from kubefoundry_conformance.cluster.rig import Rig, of_rig
from kubefoundry_conformance.cluster.waiting import condition, phase
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.reasons import PROVIDER_COMPATIBLE, READY, RESOURCE_CREATED

EXPECTED: Final = "Ready at an earlier generation"


async def check_refused_edit(rig: Rig) -> Finding | None:
    """Refuse the write of an edit, and expect that `Ready` does not name the edit's generation.

    Raises:
        Skipped: The subject changes its object in place for no edit.
    """
    place = rig.place()
    await rig.running(place)
    async with refuse_writes(rig, place, await rig.upstream(place)):
        for change in CHANGES:
            generation = (await rig.respec(place, change))["metadata"]["generation"]
            live = await rig.deployment(place, partial(_is_reported, generation))
            if condition(live, RESOURCE_CREATED).get("reason") == "ApplyRejected":
                return _premature(live, generation, "the API server refused")
            await rig.replace(place, rig.spec)
    raise Skipped(_unchanged())


async def check_unreported_edit(rig: Rig) -> Finding | None:
    """Keep the upstream's status after an edit, and expect that `Ready` does not name the edit's generation.

    Then the upstream reports the edit, and `Ready` must name its generation.

    Raises:
        Skipped: The subject changes its object in place for no edit.
    """
    place = rig.place()
    await rig.running(place)
    for change in CHANGES:
        before = await rig.upstream(place)
        generation = (await rig.respec(place, change))["metadata"]["generation"]
        live = await rig.deployment(place, partial(_is_reported, generation))
        if not await _is_edited(rig, place, before):
            await rig.replace(place, rig.spec)
            continue
        if finding := _premature(live, generation, "the upstream has not reported on"):
            return finding
        await rig.play(place, rig.case("Deploying"))
        await rig.deployment(place, lambda obj: phase(obj) != "Running")
        await rig.play(place, rig.case("Running"))
        await rig.deployment(place, partial(_is_ready, generation))
        return None
    raise Skipped(_unchanged())


async def _is_edited(rig: Rig, place: Place, before: Object) -> bool:
    """Check whether the subject changed the spec of the upstream object in place."""
    after = (await rig.upstream(place))["metadata"]
    meta = before["metadata"]
    return bool(after["uid"] == meta["uid"] and after.get("generation") != meta.get("generation"))


def _is_reported(generation: int, obj: Object) -> bool:
    """Check whether the subject has reported the result of that generation."""
    fits, created = condition(obj, PROVIDER_COMPATIBLE), condition(obj, RESOURCE_CREATED)
    if fits.get("observedGeneration") != generation:
        return False
    return fits.get("status") == "False" or created.get("observedGeneration") == generation


def _is_ready(generation: int, obj: Object) -> bool:
    ready = condition(obj, READY)
    return ready.get("status") == "True" and ready.get("observedGeneration") == generation


def _premature(obj: Object, generation: int, why: str) -> Finding | None:
    if not _is_ready(generation, obj):
        return None
    return Finding(f"Ready=True at generation {generation}, which {why}", EXPECTED)


def _unchanged() -> str:
    fields = ", ".join(next(iter(change)) for change in CHANGES)
    return f"the subject changes its upstream object in place for none of {fields}"


CHECKS: Final = (
    of_rig("OBS-10", "an edit that the API server refuses", check_refused_edit, EXPECTED),
    of_rig("OBS-10", "an edit that the upstream reports on later", check_unreported_edit, EXPECTED),
)
