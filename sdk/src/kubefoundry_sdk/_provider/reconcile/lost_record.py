"""Reports an upstream object whose record of the last apply was lost before an edit (contract §4.19).

Without the record, nobody knows which fields the edit drops. An apply removes those that our entry in `managedFields`
names, and a user who may write the object may have cut that entry, too.
"""

from __future__ import annotations

from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.reconcile import release
from kubefoundry_sdk._provider.reconcile.memory import Memory
from kubefoundry_sdk._provider.write.admission import Admission
from kubefoundry_sdk._provider.write.manifest import Record


def is_lost(
    live: Object, upstream: Object, record: Record | None, main: Object, admission: Admission, manager: str
) -> bool:
    """Check whether we have applied an earlier generation to the object, and its record is missing or unreadable.

    If the newest generation was applied, the next apply drops no field. A model that was never edited has no other
    generation. An imported object has no record.

    Args:
        live: The ModelDeployment.
        upstream: Its upstream object.
        record: The record of the upstream object.
        main: The main object that is about to be applied.
        admission: The API server's responses to earlier applies.
        manager: Our field manager.
    """
    generation = live["metadata"]["generation"]
    if record is not None or generation == 1:
        return False
    if admission.knows(main) or not release.owns_condition(live, manager, reasons.RESOURCE_CREATED):
        return False
    created = LiveModelDeployment(live).condition(reasons.RESOURCE_CREATED) or {}
    if created.get("status") == "True":
        return bool(created.get("observedGeneration") != generation)
    # Admission may have removed the record from the apply of the newest generation. This process knows the response
    # to that apply. A new process, also of a later release, finds the generation beside the record. If admission
    # removed that, too, the record counts as lost. This is safe, because only the message depends on it.
    annotations = upstream["metadata"].get("annotations") or {}
    return annotations.get(names.APPLIED_GENERATION_ANNOTATION) != str(generation)


def clause(live: Object, upstream: Object, memory: Memory) -> str:
    """Return the clause about the object for the message, empty if nothing is unknown.

    It stays until the object is recreated. A new process finds it in our last message.
    """
    named = f"{upstream['kind']} '{upstream['metadata']['name']}'"
    text = (
        f"the record on {named} was lost before an edit, so fields that earlier versions set may remain; to be sure, "
        "delete that object, which interrupts the model: it is created again"
    )
    uid = str(upstream["metadata"]["uid"])
    if memory.unchecked is None:
        before = str(LiveModelDeployment(live).status.get("message"))
        memory.unchecked = uid if text in before else ""
    return text if memory.unchecked == uid else ""
