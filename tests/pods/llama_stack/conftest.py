"""Images that several of these tests use, and pods without a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kubefoundry_nodes.kubelet import chroot
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.runner import Node
from llamastack_providers import zipapp
from pods.images import distribution, model_server, provider
from pods.llama_stack.chain import Chain


@dataclass(frozen=True, slots=True)
class Release:
    """What the distribution's llama-stack is. modules: those at the top that its server loads from the image's
    packages. apis: for which it has providers."""

    modules: set[str]
    apis: set[str]


PROGRAM = """
import json, sys
import llama_stack.core.server.server, llama_stack.core.stack
from llama_stack.core.distribution import providable_apis
tops = {name.partition(".")[0] for name in sys.modules}
found = [name for name in tops if "site-packages" in str(getattr(sys.modules.get(name), "__file__", None))]
print(json.dumps([found, [one.value for one in providable_apis()]]))
"""


@pytest.fixture(scope="session")
def release(base: Image) -> Release:
    done = chroot.run(base, ["python3", "-c", PROGRAM])
    assert done.returncode == 0, done.stderr
    modules, apis = json.loads(done.stdout)
    return Release(set(modules), set(apis))


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zipapp, as a ConfigMap's volume has it: for everybody to read."""
    made = zipapp.build(tmp_path_factory.mktemp("tool") / "tool.pyz")
    made.chmod(0o644)
    return made


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return distribution.image(tmp_path_factory.mktemp("distribution") / "layer")


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory, tool: Path, base: Image) -> Callable[[], Chain]:
    """Makes pods with volumes of their own."""
    return lambda: Chain(tmp_path_factory.mktemp("volumes"), tool, base)


@pytest.fixture(scope="session")
def example_images(tmp_path_factory: pytest.TempPathFactory) -> list[Image]:
    """Those of the providers of examples/llamastack."""
    return provider.examples(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="session")
def examples(node: Node, base: Image, example_images: list[Image]) -> None:
    """The node has the distribution's image and those of the examples."""
    for image in (base, *example_images):
        node.add(image)


@pytest.fixture(scope="session")
def served_images(node: Node, base: Image, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The node has the distribution's image and those of providers with services."""
    for image in (base, *provider.with_services(tmp_path_factory.mktemp("served"))):
        node.add(image)


@pytest.fixture(scope="session")
def opponents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[provider.Files, list[Path]]]:
    """Sources and wheels of two providers, `left` and `right`, that need other versions of one package."""
    sources = [
        provider.scaffolded("inference", "acme-left", ["acme-common==1.0"]),
        provider.scaffolded("inference", "acme-right", ["acme-common==2.0"]),
    ]
    libraries = [provider.library("acme-common", version) for version in ("1.0", "2.0")]
    made = provider.wheels([*sources, *libraries], tmp_path_factory.mktemp("opponents"))
    return {"left": (sources[0], [made[0], made[2]]), "right": (sources[1], [made[1], made[3]])}


@pytest.fixture(scope="session")
def engine(node: Node, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The node has the image of an engine."""
    node.add(model_server.image(tmp_path_factory.mktemp("engine")))
