"""The ground of LlamaStackDistributions."""

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
    """A control plane with all controllers and our CRDs; nothing of ours runs yet. Raises CannotRun.

    own: not the one that the environment names.
    """
    with prepared_plane(folder / "plane", [CRD], ["--all-controllers"], own=own) as server:
        made = Suite(server, folder / "suite")
        try:
            yield made
        finally:
            made.stop()
