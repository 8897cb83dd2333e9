"""A control plane with all controllers, the CRDs, and the operator as its manifest states it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk.cluster import credentials
from kubefoundry_sdk.cluster.client import Client
from support.llamastack_plane import plane_with_crds
from support.namespaces import new_namespace


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """The operator at work, for tests that leave it as it was."""
    with plane_with_crds(tmp_path_factory.mktemp("llamastack")) as made:
        made.start("llamastack")
        yield made


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Suite]:
    """A control plane of one's own, the operator not started."""
    with plane_with_crds(tmp_path) as made:
        yield made


@pytest.fixture
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """An administrator's client to the control plane of the test."""
    made = request.getfixturevalue("idle" if "idle" in request.fixturenames else "stack")
    async with Client(credentials.from_kubeconfig(str(made.plane.kubeconfig)), user_agent="test") as client:
        yield client


@pytest.fixture
async def namespace(api: Client) -> str:
    """A namespace of the test's own."""
    return await new_namespace(api)
