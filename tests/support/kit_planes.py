"""Reuse control planes for runs of the conformance kit in the process of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubefoundry_conformance.cluster import local
from support.ground import prepared_plane


@contextmanager
def kept_planes() -> Iterator[None]:
    """Let the kit borrow an idle control plane during the block, if there is one, and start none of its own."""
    local.planes_from(lambda folder: prepared_plane(folder / "plane", (), own=True))
    try:
        yield
    finally:
        local.planes_from(local.own_plane)
