"""Delay the deletion of upstream objects by a finalizer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.client import Client
from support.waiting import until

HELD: Final = "example.com/held-by-the-test"


@asynccontextmanager
async def held(api: Client, kind: Kind, namespace: str, name: str = "m") -> AsyncIterator[None]:
    """Put a foreign finalizer on an object during the block, in which the object is deleted."""
    await hold(api, kind, namespace, name)
    yield
    await let_go(api, kind, namespace, name)


async def hold(api: Client, kind: Kind, namespace: str, name: str = "m") -> None:
    """Add the finalizer."""
    add = [{"op": "add", "path": "/metadata/finalizers/-", "value": HELD}]
    await api.json_patch(kind, name, namespace, add, manager="test")


async def let_go(api: Client, kind: Kind, namespace: str, name: str = "m") -> None:
    """Remove the finalizer of an object that is being deleted, once it is the last finalizer."""
    await until(
        api, kind, name, namespace, lambda obj: obj is not None and obj["metadata"]["finalizers"] == [HELD]
    )
    remove = [{"op": "remove", "path": "/metadata/finalizers"}]
    await api.json_patch(kind, name, namespace, remove, manager="test")
