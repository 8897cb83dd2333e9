"""One control plane with Kueue for all tests of this rung, and a team with its own quota for each test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kueue.rig import ADDRESS, running_rig
from kueue.team import Team, create_flavor, create_team
from support import pod_network


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """The rig of rig.py. Skips outside the network namespace that `run` makes."""
    pod_network.require(ADDRESS, "tests/kueue/run")
    with running_rig(tmp_path_factory.mktemp("kueue")) as suite:
        create_flavor(suite.plane)
        yield suite


@pytest.fixture
async def team(rig: Suite) -> AsyncIterator[Team]:
    """A namespace with a queue that has quota for one GPU."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    create_team(rig.plane, name)
    administrator = credentials.from_kubeconfig(str(rig.plane.kubeconfig))
    async with Client(administrator, user_agent="test") as api:
        yield Team(api, rig.plane, name)
