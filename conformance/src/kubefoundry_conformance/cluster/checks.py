"""All checks of processes."""

from __future__ import annotations

from typing import Final

from kubefoundry_conformance.cluster import leaving, life, registering, selecting

PROVIDER: Final = (
    *registering.REGISTRATION,
    *registering.PROCESS,
    *life.CHECKS,
    *leaving.CHECKS,
    *registering.LAST,
)
"""In this order: the first ones see the CRD come."""

SELECTOR: Final = (*selecting.CHECKS, *registering.PROCESS, *registering.LAST)
