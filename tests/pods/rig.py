"""A control plane with all controllers, a node that really runs pods, and our operator at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubefoundry_demo.control_plane import ROOT, own_control_plane
from kubefoundry_demo.suite import NAMESPACE, Suite
from kubefoundry_llamastack.names import LLSD
from pods import operator_process
from pods.runner import Node


@contextmanager
def plane_with_crds(folder: Path) -> Iterator[Suite]:
    """The control plane with our CRDs; nothing of ours runs yet. Raises CannotRun."""
    # The garbage collector looks for new kinds every 30 s: what is there before it starts, it knows at once.
    crd = f"--crds={ROOT / 'crds' / 'llamastack' / 'llamastackdistributions.yaml'}"
    with own_control_plane(folder / "plane", ["--all-controllers", crd]) as plane:
        made = Suite(plane, folder / "suite")
        made.install_ground()
        plane.kubectl("apply", "--server-side", "-k", str(ROOT / "crds" / "llamastack"))
        plane.wait_served(LLSD.crd)
        try:
            yield made
        finally:
            made.stop()


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
