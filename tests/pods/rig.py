"""A node that really runs pods, our operator at work, and the end of what was created for it."""

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


def end_pods(suite: Suite, namespace: str) -> None:
    """Deletes what runs pods there, and all that belongs to it. The namespace stays: to delete one, the controllers
    ask the API server twice about each kind that it has.

    Pods of a Deployment, which have that label, go with it: deleted before it, they would be replaced.
    """
    kinds = "llamastackdistributions,modeldeployments,deployments,pods"
    suite.plane.kubectl("delete", kinds, "-l", "!pod-template-hash", "-n", namespace, "--wait=false")
