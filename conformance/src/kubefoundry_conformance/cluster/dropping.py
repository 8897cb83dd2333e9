"""SUP-1 of a process: each field of the spec changes what a dry run reports, or is refused."""

from __future__ import annotations

import json
from typing import Any, Final

from kubefoundry_conformance.check import Finding, Skipped
from kubefoundry_conformance.cluster.deployments import Place
from kubefoundry_conformance.cluster.rig import Rig, of_rig
from kubefoundry_conformance.cluster.waiting import condition
from kubefoundry_conformance.functions.supporting import dropped, edits
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.contract_version import ignored_fields, is_version, stated
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.reasons import PROVIDER_COMPATIBLE, RESOURCE_CREATED


async def check_fields(rig: Rig) -> Finding | None:
    """Change each field of a ModelDeployment in a dry run, and expect other objects or a refusal.

    Raises:
        Skipped: The subject refuses the first spec, or its dry runs report no objects.
    """
    place = rig.place()
    live = await rig.create(place, annotations={names.DRY_RUN_ANNOTATION: "true"})
    before = await _objects(rig, place, live["metadata"]["generation"])
    if before is None:
        raise Skipped("the first spec of the cases is refused")
    contract = stated(await rig.registered())
    if contract and not is_version(contract):
        return Finding(
            f"annotation {names.CONTRACT_ANNOTATION}: {contract!r}", "a version, such as 0.3, or none"
        )
    for field, value, changed in edits(rig.spec, rig.cases.meaningless):
        if ignored_fields(changed, contract):
            # Core refuses a field that is newer than the provider's contract, so the provider never sees it.
            continue
        edited = await rig.replace(place, changed)
        if await _objects(rig, place, edited["metadata"]["generation"]) == before:
            return dropped(field, value, rig.spec)
    return None


async def _objects(rig: Rig, place: Place, generation: int) -> list[Object] | None:
    """Return the objects of the dry run of a generation without our annotations, None if the spec is refused.

    Raises:
        Skipped: The result has no objects.
    """

    def is_answered(obj: Object) -> bool:
        fits, created = condition(obj, PROVIDER_COMPATIBLE), condition(obj, RESOURCE_CREATED)
        if fits.get("observedGeneration") != generation:
            return False
        return fits.get("status") == "False" or created.get("observedGeneration") == generation

    live = await rig.deployment(place, is_answered)
    if condition(live, PROVIDER_COMPATIBLE).get("status") == "False":
        return None
    result = json.loads(
        (live["metadata"].get("annotations") or {}).get(names.DRY_RUN_RESULT_ANNOTATION) or "{}"
    )
    if not result.get("objects"):
        raise Skipped("the dry-run result names no objects")
    return [_without_record(obj) for obj in result["objects"]]


def _without_record(obj: Object) -> Object:
    """Return an object without the annotations that hold the spec and its generation."""
    meta: dict[str, Any] = obj.get("metadata") or {}
    annotations = {
        key: value
        for key, value in (meta.get("annotations") or {}).items()
        if not key.startswith(names.PREFIX)
    }
    return {**obj, "metadata": {**meta, "annotations": annotations}}


CHECKS: Final = (
    of_rig("SUP-1", "each field of the spec on its own, in a dry run", check_fields, "a dry-run result"),
)
