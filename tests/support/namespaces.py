"""Namespaces for tests that share a control plane."""

from __future__ import annotations

import uuid

from kubefoundry_sdk.cluster.client import Client
from support.kinds import NAMESPACES


async def new_namespace(api: Client) -> str:
    """The name of a namespace that is made now, and that nobody else uses."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await api.create(NAMESPACES, body, manager="test")
    return name
