"""Reports the claim of a server, and other servers that use the same claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubefoundry_llamastack import reasons
from kubefoundry_llamastack.ownership import controller_of
from kubefoundry_llamastack.reasons import condition
from kubefoundry_llamastack.snapshot import Snapshot
from kubefoundry_sdk._api.conditions import Condition, find
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import mapping, mappings


def conditions(snapshot: Snapshot) -> list[Condition]:
    """Return StorageReady of a CR with storage, and StorageExclusive while several servers write to one claim."""
    return [*_ready(snapshot), *_exclusive(snapshot)]


def shared_claims(name: str, crs: Mapping[str, Object]) -> dict[str, str]:
    """Return the claims that other CRs write to as well.

    Args:
        name: Name of the CR.
        crs: The live CRs of its namespace, by name.

    Returns:
        The name of another CR by claim.
    """
    own = written_claims(name, crs.get(name))
    return {
        claim: other
        for other in sorted(crs)
        if other != name
        for claim in sorted(own & written_claims(other, crs[other]))
    }


def misreported(name: str, live: Object | None, crs: Mapping[str, Object]) -> list[str]:
    """Return the other CRs whose report of a shared claim a change of this CR may have made wrong.

    Args:
        name: Name of the CR.
        live: The CR, None if it was deleted.
        crs: The live CRs of its namespace, by name.
    """
    own = written_claims(name, live)
    return [
        other
        for other, cr in crs.items()
        if other != name and _reports_sharing(cr) is own.isdisjoint(written_claims(other, cr))
    ]


def _reports_sharing(cr: Object) -> bool:
    reported = find((cr.get("status") or {}).get("conditions"), reasons.STORAGE_EXCLUSIVE) or {}
    return reported.get("reason") == "ClaimShared"


def is_unreported(live: Object) -> bool:
    """Check whether no condition is about the CR's present spec yet."""
    conditions = (live.get("status") or {}).get("conditions") or ()
    return all(item.get("observedGeneration") != live["metadata"]["generation"] for item in conditions)


def written_claims(name: str, live: Object | None) -> set[str]:
    """Return the claims that the pods of a CR can write to: its own, and those of podOverrides."""
    server = mapping(mapping(mapping(live).get("spec")).get("server"))
    overrides = mapping(server.get("podOverrides"))
    mounts = mappings(overrides.get("volumeMounts"))
    writable = {str(mount.get("name")) for mount in mounts if not mount.get("readOnly")}
    claims = {f"{name}-pvc"} if "storage" in server else set()
    for volume in mappings(overrides.get("volumes")):
        claim = mapping(volume.get("persistentVolumeClaim"))
        if str(volume.get("name")) in writable and not claim.get("readOnly"):
            claims.add(str(claim.get("claimName")))
    return claims


def _ready(snapshot: Snapshot) -> Iterator[Condition]:
    if snapshot.cr.spec.server.storage is None:
        return
    type_, generation = reasons.STORAGE_READY, snapshot.cr.generation
    if obstacle := snapshot.obstacle(type_):
        yield obstacle
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


def _exclusive(snapshot: Snapshot) -> Iterator[Condition]:
    """Yield a condition if servers may damage the files of one another, of SQLite for example."""
    cr = snapshot.cr
    autoscaling = cr.spec.server.autoscaling
    most = autoscaling.max_replicas if autoscaling else cr.spec.replicas
    if snapshot.shared:
        claim, other = min(snapshot.shared.items())
        reason = "ClaimShared"
        text = (
            f"LlamaStackDistribution '{other}' writes to PersistentVolumeClaim '{claim}' as well, and neither server "
            "expects the other's files\nResolution: Use a claim of its own for each, or mount it with readOnly in "
            "podOverrides.volumeMounts."
        )
    elif cr.spec.server.storage is not None and most > 1:
        reason = "SeveralPods"
        text = (
            f"Up to {most} pods write to PersistentVolumeClaim '{cr.name}-pvc', whose access mode is ReadWriteOnce. "
            "Pods on other nodes may not start, and pods that start share all files\nResolution: Run one pod, or "
            "remove storage and keep the state in a database that all pods reach."
        )
    else:
        return
    yield condition(reasons.STORAGE_EXCLUSIVE, False, reason, text, generation=cr.generation)
