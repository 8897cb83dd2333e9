"""Suites on control planes of their own, and the upstream CRDs that come and go under them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubefoundry_local.apply import apply
from kubefoundry_local.suite import Suite
from support.ground import prepared_plane
from support.upstream import STANDINS


@contextmanager
def running_suite(
    folder: Path, *providers: str, simulator_flags: Sequence[str] = (), plane_flags: Sequence[str] = ()
) -> Iterator[Suite]:
    """A suite on a control plane of its own; `providers`: whose upstream CRD and simulated operator are there."""
    crds = [STANDINS / f"{provider}.yaml" for provider in providers]
    with prepared_plane(folder / "plane", crds, plane_flags) as plane:
        made = Suite(plane, folder / "suite")
        if providers:
            made.simulate(*providers, flags=simulator_flags)
        try:
            yield made
        finally:
            made.stop()


def install_crd(suite: Suite, document: dict[str, Any]) -> None:
    """Applies an upstream CRD and waits until it is served."""
    apply(suite.plane, [document])
    suite.plane.wait_served(document["metadata"]["name"])
