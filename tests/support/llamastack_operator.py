"""Runs the LlamaStack operator in the test's own process, against a server instead of the API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubefoundry_llamastack.controller import Controller
from kubefoundry_llamastack.names import LLSD
from kubefoundry_llamastack.render.request import Settings
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.process import Process
from support.wire import Answer, Wire, wire


@asynccontextmanager
async def operator_on(answer: Answer) -> AsyncIterator[Wire]:
    """Run the operator during the block."""
    parser = options.parser("kubefoundry-llamastack", "")
    parser.add_argument("--openshift-anyuid", default=False)
    options.mirror(parser)
    chosen = parser.parse_args(["--health-port=0", "--metrics-port=0"])
    stop = asyncio.Event()
    async with wire(answer) as server, asyncio.timeout(30), asyncio.TaskGroup() as group:
        process = Process("kubefoundry-llamastack", chosen, server.client)
        Controller(process, Settings())
        group.create_task(process.run(stop, needs=LLSD.api_version))
        yield server
        stop.set()
