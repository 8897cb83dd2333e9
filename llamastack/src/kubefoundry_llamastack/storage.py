"""Reports the claim of a server, and other servers that use the same claim."""

from __future__ import annotations

from collections.abc import Iterator

from kubefoundry_llamastack import reasons
from kubefoundry_llamastack.ownership import controller_of
from kubefoundry_llamastack.reasons import condition
from kubefoundry_llamastack.snapshot import Snapshot
from kubefoundry_sdk._api.conditions import Condition


def conditions(snapshot: Snapshot) -> list[Condition]:
    """Return StorageReady of a CR with storage."""
    return list(_ready(snapshot))


def _ready(snapshot: Snapshot) -> Iterator[Condition]:
    if snapshot.cr.spec.server.storage is None:
        return
    type_, generation = reasons.STORAGE_READY, snapshot.cr.generation
    for item in snapshot.obstacles:
        if item.type == type_:
            yield condition(type_, False, item.reason, item.message, generation=generation)
            return
    claim = snapshot.claim
    claim_phase = ((claim or {}).get("status") or {}).get("phase") or "not created"
    is_bound = claim_phase == "Bound"
    text = "PVC is bound" if is_bound else f"PVC is not bound: {claim_phase}"
    if claim is not None and controller_of(claim) is None:
        text += (
            f"\nWARNING: PersistentVolumeClaim '{claim['metadata']['name']}' has lost its owner reference, so it "
            "remains when this LlamaStackDistribution is deleted; delete it yourself once nobody needs its data"
        )
    reason = "StorageReady" if is_bound else "StoragePending"
    yield condition(type_, is_bound, reason, text, generation=generation)
