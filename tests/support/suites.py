"""Suites on control planes of their own, and the installation of upstream CRDs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubefoundry_local.apply import apply
from kubefoundry_local.control_plane import control_plane
from kubefoundry_local.suite import Suite
from support.ground import prepared_plane
from support.kinds import UPSTREAM
from support.upstream import STANDINS


@contextmanager
def running_suite(
    folder: Path, *providers: str, simulator_flags: Sequence[str] = (), plane_flags: Sequence[str] = ()
) -> Iterator[Suite]:
    """Yield a suite on a control plane of its own, with upstream CRD and simulated operator of each provider."""
    crds = [STANDINS / f"{provider}.yaml" for provider in providers]
    with prepared_plane(folder / "plane", crds, plane_flags) as plane:
        suite = Suite(plane, folder / "suite")
        if providers:
            suite.simulate(*providers, flags=simulator_flags)
        try:
            yield suite
        finally:
            suite.stop()


@contextmanager
def upstream_suite(folder: Path) -> Iterator[Suite]:
    """Yield a suite with all upstream CRDs and simulated operators. The test installs KubeFoundry itself."""
    with control_plane(folder / "plane", ["--all-controllers"]) as plane:
        for provider in UPSTREAM:
            plane.kubectl("apply", "--server-side", "-f", str(STANDINS / f"{provider}.yaml"))
        plane.wait_served(*(kind.crd for kind in UPSTREAM.values()))
        suite = Suite(plane, folder / "suite")
        suite.simulate(*UPSTREAM)
        try:
            yield suite
        finally:
            suite.stop()


def install_crd(suite: Suite, document: dict[str, Any]) -> None:
    """Apply an upstream CRD, and wait until it is served."""
    apply(suite.plane, [document])
    suite.plane.wait_served(document["metadata"]["name"])
