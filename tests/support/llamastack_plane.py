"""Control planes for LlamaStackDistributions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import Suite
from support.ground import prepared_plane

CRD = ROOT / "crds" / "llamastack" / "llamastackdistributions.yaml"


@contextmanager
def plane_with_crds(folder: Path, *, own: bool = False) -> Iterator[Suite]:
    """Yield a control plane with all controllers and our CRDs, without processes of ours.

    Args:
        folder: The folder of its data.
        own: Whether to use a local control plane even if the environment names a running cluster.

    Raises:
        CannotRun: It cannot be built or started.
    """
    with prepared_plane(folder / "plane", [CRD], ["--all-controllers"], own=own) as server:
        suite = Suite(server, folder / "suite")
        try:
            yield suite
        finally:
            suite.stop()
