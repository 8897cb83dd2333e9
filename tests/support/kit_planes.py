"""Control planes of the conformance kit, where it runs in the process of a test: kept from one run to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubefoundry_conformance.cluster import local
from support.ground import prepared_plane


@contextmanager
def kept_planes() -> Iterator[None]:
    """Meanwhile the kit starts none of its own where one is idle."""
    local.planes_from(lambda folder: prepared_plane(folder / "plane", (), own=True))
    try:
        yield
    finally:
        local.planes_from(local.own_plane)
