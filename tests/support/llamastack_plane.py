"""The ground of LlamaStackDistributions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.control_plane import ROOT, ControlPlane, control_plane
from kubefoundry_local.suite import Suite

Plane = Callable[[Path, Sequence[str]], AbstractContextManager[ControlPlane]]


@contextmanager
def plane_with_crds(folder: Path, plane: Plane = control_plane) -> Iterator[Suite]:
    """A control plane with all controllers and our CRDs; nothing of ours runs yet. Raises CannotRun."""
    # The garbage collector looks for new kinds every 30 s: what is there before it starts, it knows at once.
    crd = f"--crds={ROOT / 'crds' / 'llamastack' / 'llamastackdistributions.yaml'}"
    with plane(folder / "plane", ["--all-controllers", crd]) as server:
        made = Suite(server, folder / "suite")
        made.install_ground()
        server.kubectl("apply", "--server-side", "-k", str(ROOT / "crds" / "llamastack"))
        server.wait_served(LLSD.crd)
        try:
            yield made
        finally:
            made.stop()
