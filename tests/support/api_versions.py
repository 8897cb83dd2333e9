"""ModelDeployments at the versions of the API, and the versions in which etcd stores our objects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.etcd import Etcd

NEWEST: Final = Kind(names.GROUP, names.NEWEST_VERSION, names.MODEL_DEPLOYMENTS, names.MODEL_DEPLOYMENT)

AT_A_TIME: Final = 50
"""Creations at the same time."""


async def create_all(api: Client, deployments: Sequence[Object]) -> None:
    """Create many ModelDeployments of `names.VERSION`."""
    for start in range(0, len(deployments), AT_A_TIME):
        batch = deployments[start : start + AT_A_TIME]
        await asyncio.gather(*(api.create(MODEL_DEPLOYMENTS, body, manager="test") for body in batch))


def stored_in(plane: ControlPlane, namespace: str = "") -> set[str]:
    """Return the API versions in etcd of the namespace's ModelDeployments, or of all our objects."""
    models = f"{names.MODEL_DEPLOYMENTS}/{namespace}/" if namespace else ""
    prefix = f"/registry/{names.GROUP}/{models}".encode()
    values = Etcd(plane.kubeconfig.parent).values()
    return {json.loads(value)["apiVersion"] for key, (_, value) in values.items() if key.startswith(prefix)}
