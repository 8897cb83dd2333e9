"""What is written to an upstream object of which the store has heard since the turn began."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk.api.kinds import Kind
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.credentials import Credentials
from kubefoundry_sdk.cluster.errors import Unreachable
from kubefoundry_sdk.provider.write import apply
from kubefoundry_sdk.runtime.store import Store

KIND = Kind("example.com", "v1", "engines", "Engine")

DEPLOYMENT = "11111111-1111-1111-1111-111111111111"

OURS: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Engine",
    "metadata": {
        "name": "m",
        "namespace": "n",
        "ownerReferences": [
            {
                "apiVersion": "kubefoundry.ai/v1alpha1",
                "kind": "ModelDeployment",
                "name": "m",
                "uid": DEPLOYMENT,
                "controller": True,
            }
        ],
    },
}


def standing(**metadata: Any) -> Store:
    """A store that knows an object of our name with that metadata."""
    store = Store()
    store.put({"metadata": {"name": "m", "namespace": "n", "uid": "u", "resourceVersion": "7", **metadata}})
    return store


async def put_back(store: Store) -> None:
    """Applies to an API server that is not there, so that any request is Unreachable."""
    nowhere = Credentials("http://127.0.0.1:1", None, lambda: None)
    async with Client(nowhere, user_agent="test") as client:
        await apply.put_back(client, KIND, store, OURS, manager="test")


async def test_another_ones_object_that_came_meanwhile_is_not_written() -> None:
    with pytest.raises(apply.NameTaken, match="Engine 'm'"):
        await put_back(standing())


@pytest.mark.parametrize(
    "store",
    [
        pytest.param(Store(), id="none there"),
        pytest.param(standing(ownerReferences=OURS["metadata"]["ownerReferences"]), id="ours"),
        pytest.param(
            standing(annotations={"kubefoundry.ai/owner-uid": DEPLOYMENT}), id="ours, without its owner"
        ),
    ],
)
async def test_ours_is_written(store: Store) -> None:
    with pytest.raises(Unreachable):
        await put_back(store)
