"""Namespaces for tests that share a control plane."""

from __future__ import annotations

import uuid

from kubefoundry_sdk._api.kinds import NAMESPACES
from kubefoundry_sdk._cluster.client import Client


async def new_namespace(api: Client) -> str:
    """Create a namespace for one test, and return its name."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await api.create(NAMESPACES, body, manager="test")
    return name
