"""One control plane with all controllers, our operator, and a node that really runs pods, for all tests here."""

from __future__ import annotations

import socket
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet import addresses
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from pods.rig import end_pods, running_node
from support.llamastack_plane import plane_with_crds
from support.waiting import until

ACCOUNTS = Kind("", "v1", "serviceaccounts", "ServiceAccount")


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """The control plane with our CRDs; nothing of ours runs yet. Skips outside the namespaces that `run` makes."""
    with socket.socket() as probe:
        try:
            probe.bind((addresses.NODE, 0))
        except OSError:
            pytest.skip("there is no network for pods here: start these tests by tests/pods/run")
    with plane_with_crds(tmp_path_factory.mktemp("pods"), own=True) as made:
        yield made


@pytest.fixture(scope="session")
def node(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that runs pods, and our operator at work. `node.images` may be changed at any time."""
    with running_node(suite, tmp_path_factory.mktemp("node")) as made:
        yield made


@pytest.fixture(autouse=True)
def _node_lives(node: Node) -> Iterator[None]:
    node.check()
    yield
    node.check()


@pytest.fixture
async def api(suite: Suite) -> AsyncIterator[Client]:
    """An administrator's client."""
    admin = credentials.from_kubeconfig(str(suite.plane.kubeconfig))
    async with Client(admin, user_agent="test") as client:
        yield client


@pytest.fixture
async def namespace(suite: Suite, api: Client) -> AsyncIterator[str]:
    """A namespace of the test's own, in which pods can be created; what runs there ends with the test."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    suite.plane.kubectl("create", "namespace", name)
    await until(api, ACCOUNTS, "default", name, lambda found: found is not None)
    yield name
    end_pods(suite, name)
