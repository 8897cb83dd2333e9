"""A node that really runs pods, and our operator at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubefoundry_demo.suite import NAMESPACE, Suite
from pods import operator_process
from pods.runner import Node


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
