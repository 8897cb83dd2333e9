"""Reports an upstream object whose record of the last apply was lost before an edit (contract §4.19).

Without the record, nobody knows which fields the edit drops. An apply removes those that our entry in `managedFields`
names, and a user who may write the object may have cut that entry, too.
"""

from __future__ import annotations

from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.reconcile import release
from kubefoundry_sdk._provider.reconcile.memory import Memory
from kubefoundry_sdk._provider.write.apply import NOT_STORED
from kubefoundry_sdk._provider.write.manifest import Record


def is_lost(live: Object, record: Record | None, manager: str) -> bool:
    """Check whether we have applied an earlier generation to the object, and its record is missing or unreadable.

    If the newest generation was applied, the next apply drops no field. It was applied, too, if admission removed the
    record from that apply. A model that was never edited has no other generation. An imported object has no record.

    Args:
        live: The ModelDeployment.
        record: The record of its upstream object, which exists.
        manager: Our field manager.
    """
    generation = live["metadata"]["generation"]
    if record is not None or generation == 1:
        return False
    created = LiveModelDeployment(live).condition(reasons.RESOURCE_CREATED) or {}
    was_applied = created.get("status") == "True" or NOT_STORED in str(created.get("message"))
    is_newest = was_applied and created.get("observedGeneration") == generation
    return release.owns_condition(live, manager, reasons.RESOURCE_CREATED) and not is_newest


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
