"""A process whose start fails: told in one line, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings

import pytest

from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.credentials import Credentials
from kubefoundry_sdk.runtime import options
from kubefoundry_sdk.runtime.process import CannotStart, Process
from kubefoundry_sdk.runtime.store import Key

NOBODY = Credentials("http://nobody.invalid", None, lambda: None)


async def nothing(key: Key) -> None:
    """Has nothing to do for any key."""


async def test_a_taken_port_is_told_and_leaves_nothing_waiting() -> None:
    # what earlier tests have left is theirs
    gc.collect()
    with socket.socket() as taken, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        chosen = options.parser("t", "").parse_args([f"--health-port={port}", "--metrics-port=0"])
        process = Process("t", chosen, Client(NOBODY, user_agent="t"))
        process.watch(MODEL_DEPLOYMENTS)
        process.queue("t", nothing)

        with pytest.raises(CannotStart, match=f"a port cannot be opened: .*{port}"):
            await process.run(asyncio.Event())
        process.close()
        del process
        gc.collect()

    assert [str(warning.message) for warning in told] == []
