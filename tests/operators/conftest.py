"""One control plane with the real operators for all tests of this rung; a table of what was seen at the end."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from operators.life import Life, watched
from operators.rig import running_rig
from operators.table import Row, text
from support import pod_network

POD: Final = "198.18.0.1"
"""An address as pods on KWOK's nodes have them (rig.py)."""

ROWS: pytest.StashKey[dict[str, list[Row]]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = {}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.write_line(text(config.stash[ROWS]))


@pytest.fixture(scope="session")
def operators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """The rig of rig.py. Skips outside the network namespace that `run` makes."""
    pod_network.require(POD, "tests/operators/run")
    with running_rig(tmp_path_factory.mktemp("operators")) as suite:
        yield suite


@pytest.fixture
async def life(operators: Suite, request: pytest.FixtureRequest) -> AsyncIterator[Life]:
    """A ModelDeployment to be, in a namespace of its own."""
    namespace = f"t-{uuid.uuid4().hex[:8]}"
    operators.plane.kubectl("create", "namespace", namespace)
    rows = request.config.stash[ROWS].setdefault(request.node.name, [])
    administrator = credentials.from_kubeconfig(str(operators.plane.kubeconfig))
    async with Client(administrator, user_agent="test") as api, watched(api, namespace, rows) as made:
        yield made
