"""What a provider remembers of a ModelDeployment goes with it."""

from __future__ import annotations

from typing import Any

from kubefoundry_sdk.provider.health.models_endpoint import directly
from kubefoundry_sdk.provider.health.verification import Verification
from kubefoundry_sdk.provider.reconcile.context import Context
from kubefoundry_sdk.provider.reconcile.reconciler import reconcile
from kubefoundry_sdk.runtime.store import Store

NOT_ASKED: Any = None
"""Of an object that is gone nobody is asked anything."""


async def test_nothing_is_remembered_of_one_that_is_gone() -> None:
    verification = Verification(directly(NOT_ASKED), lambda work: None, lambda key: None, always=False)
    context = Context(
        provider=NOT_ASKED,
        client=NOT_ASKED,
        recorder=NOT_ASKED,
        deployments=Store(),
        upstream=NOT_ASKED,
        helpers=NOT_ASKED,
        finalizer_timeout=300.0,
        pods=None,
        verification=verification,
        clock=lambda: 0.0,
    )
    for name in ("gone", "there"):
        context.memory(("n", name)).deletion.left(["u"], 300.0, 0.0)

    again = await reconcile(context, ("n", "gone"))

    assert again is None
    assert list(context.memories) == [("n", "there")]
