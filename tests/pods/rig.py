"""A node that really runs pods, and our operator at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubefoundry_local.suite import NAMESPACE, Suite
from kubefoundry_nodes.kubelet.runner import Node
from pods import operator_process


@contextmanager
def running_node(suite: Suite, folder: Path) -> Iterator[Node]:
    """A node that runs pods, and our operator. Raises CannotRun."""
    made = Node(suite.plane.kubeconfig, folder)
    names = folder / "operator-names"
    made.names.add(names, NAMESPACE)
    made.start()
    try:
        operator_process.start(suite, names, folder / "operator-etc")
        yield made
    finally:
        made.stop()
