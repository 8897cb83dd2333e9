"""Provider direct, the selector and a simulated KAITO, beside the node; and a hub that has a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubefoundry_local.suite import Suite, end
from kubefoundry_nodes.kubelet import addresses
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_nodes.llama import hub, image
from kubefoundry_nodes.llama.hub import Hub
from pods.direct.models import REPOSITORY
from support.suites import install_crd
from support.upstream import standin

COMPONENTS = ("core", "selector", "kaito", "direct")


@pytest.fixture(scope="session")
def engine(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """The node has the engine's image; the hub that has its model."""
    node.add(image.image(tmp_path_factory.mktemp("llama") / "layer"))
    file: Path = image.model(tmp_path_factory.mktemp("model"))
    with hub.serving(addresses.NODE, 0, REPOSITORY, file) as made:
        yield made


@pytest.fixture(scope="module")
def models(suite: Suite, engine: Hub) -> Iterator[Hub]:
    """The hub, while ModelDeployments are served: the tests beside these say themselves what becomes of theirs."""
    install_crd(suite, standin("kaito").document)
    simulator = suite.simulate("kaito", flags=["--speed", "10"])
    suite.install("direct", environment={"KUBEFOUNDRY_DEFAULT_IMAGE": f"llamacpp={image.NAME}"})
    suite.start(*COMPONENTS)
    yield engine
    for name in COMPONENTS:
        suite.uninstall(name)
    suite.simulators.remove(simulator)
    end(simulator)
