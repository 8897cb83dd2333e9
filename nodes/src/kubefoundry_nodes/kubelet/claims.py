"""Creates a volume for every claim of a namespace, and removes those that are no longer claimed.

The controller of kube-controller-manager binds the two, as in any cluster.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable
from pathlib import Path

from kubefoundry_nodes.kubelet.kubelet_client import MANAGER, VOLUMES, KubeletClient
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.errors import ApiError


async def provision(client: KubeletClient, claims: Iterable[Object], made: set[str], folder: Path) -> None:
    """Creates missing volumes, and removes those whose claim was deleted.

    made: names of the existing volumes.
    """
    wanted = {name(claim): claim for claim in claims}
    for missing in wanted.keys() - made:
        await client.apply(VOLUMES, volume(wanted[missing], folder), manager=MANAGER)
        made.add(missing)
    for left in made - wanted.keys():
        live = await client.find(VOLUMES, left)
        if live is not None:
            try:
                await client.delete(VOLUMES, left, None, uid=live["metadata"]["uid"])
            except ApiError as error:
                if not error.not_found:
                    raise
        await asyncio.to_thread(shutil.rmtree, folder / left, ignore_errors=True)
        made.discard(left)


def name(claim: Object) -> str:
    return f"pv-{claim['metadata']['uid']}"


def volume(claim: Object, folder: Path) -> Object:
    """One for this claim alone; its content is ours to remove."""
    meta, spec = claim["metadata"], claim["spec"]
    reference = {key: meta[key] for key in ("namespace", "name", "uid")}
    made: Object = {
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "accessModes": spec["accessModes"],
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
        "hostPath": {"path": str(folder / name(claim))},
    }
    if spec.get("storageClassName"):
        made["storageClassName"] = spec["storageClassName"]
    return {
        "apiVersion": VOLUMES.api_version,
        "kind": VOLUMES.kind,
        "metadata": {"name": name(claim)},
        "spec": made,
    }
