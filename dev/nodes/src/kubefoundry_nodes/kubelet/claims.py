"""Create a volume for every claim, and remove volumes that are no longer claimed.

The controller of kube-controller-manager binds claims and volumes, as in any cluster.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable
from pathlib import Path

from kubefoundry_nodes.kubelet.kubelet_client import MANAGER, VOLUMES, KubeletClient
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.errors import ApiError


async def provision(client: KubeletClient, claims: Iterable[Object], volumes: set[str], folder: Path) -> None:
    """Create missing volumes, and remove those whose claim was deleted.

    Args:
        client: The client.
        claims: All claims.
        volumes: Names of the existing volumes; the function updates the set.
        folder: The folder with the contents of all volumes.
    """
    claims_by_name = {name(claim): claim for claim in claims}
    for missing in claims_by_name.keys() - volumes:
        await client.apply(VOLUMES, volume(claims_by_name[missing], folder), manager=MANAGER)
        volumes.add(missing)
    for left in volumes - claims_by_name.keys():
        live = await client.find(VOLUMES, left)
        if live is not None:
            try:
                await client.delete(VOLUMES, left, None, uid=live["metadata"]["uid"])
            except ApiError as error:
                if not error.not_found:
                    raise
        await asyncio.to_thread(shutil.rmtree, folder / left, ignore_errors=True)
        volumes.discard(left)


def name(claim: Object) -> str:
    """Return the name of the volume of a claim."""
    return f"pv-{claim['metadata']['uid']}"


def volume(claim: Object, folder: Path) -> Object:
    """Return a volume that only this claim can bind. This module removes its content."""
    meta, spec = claim["metadata"], claim["spec"]
    reference = {key: meta[key] for key in ("namespace", "name", "uid")}
    volume_spec: Object = {
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "accessModes": spec["accessModes"],
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
        "hostPath": {"path": str(folder / name(claim))},
    }
    if spec.get("storageClassName"):
        volume_spec["storageClassName"] = spec["storageClassName"]
    return {
        "apiVersion": VOLUMES.api_version,
        "kind": VOLUMES.kind,
        "metadata": {"name": name(claim)},
        "spec": volume_spec,
    }
