"""What a provider remembers of a ModelDeployment goes with it."""

from __future__ import annotations

from kubefoundry_sdk._provider.reconcile.reconciler import reconcile
from support.contexts import context


async def test_nothing_is_remembered_of_one_that_is_gone() -> None:
    held = context()
    for name in ("gone", "there"):
        held.memory(("n", name)).deletion.left(["u"], 300.0, 0.0)

    again = await reconcile(held, ("n", "gone"))

    assert again is None
    assert list(held.memories) == [("n", "there")]
