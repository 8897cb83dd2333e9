"""Starts a control plane with all controllers, the CRDs, and the operator as its manifest has it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.llamastack_plane import plane_with_crds
from support.namespaces import new_namespace


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Run the operator, for tests that leave it unchanged."""
    with plane_with_crds(tmp_path_factory.mktemp("llamastack")) as suite:
        suite.start("llamastack")
        yield suite


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Suite]:
    """Start a control plane of the test's own, without the operator."""
    with plane_with_crds(tmp_path) as suite:
        yield suite


@pytest.fixture
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """Return an administrator's client to the control plane of the test."""
    suite = request.getfixturevalue("idle" if "idle" in request.fixturenames else "stack")
    async with Client(credentials.from_kubeconfig(str(suite.plane.kubeconfig)), user_agent="test") as client:
        yield client


@pytest.fixture
async def namespace(api: Client) -> str:
    """Create a namespace of the test's own."""
    return await new_namespace(api)
