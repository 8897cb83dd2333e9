"""Commands of the node that are cancelled, as by the deletion of a starting pod."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kubefoundry_nodes.kubelet import addresses, container
from kubefoundry_nodes.kubelet.sandbox import Sandbox

STEP = 0.0005
TRIES = 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(lambda: addresses._run("true"), id="of the network"),
        # Without the permission to enter a namespace, the command ends as soon.
        pytest.param(lambda: container.execute_in(1, Sandbox("", (), (), {}), ["true"]), id="in a container"),
    ],
)
async def test_cancelled_command_may_have_just_ended(command: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """The end coincides with the cancellation about once in forty tries."""
    for number in range(TRIES):
        running = asyncio.create_task(command())
        await asyncio.sleep(number % 20 * STEP)
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled() or running.exception() is None, running
