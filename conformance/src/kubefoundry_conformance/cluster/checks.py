"""All checks of processes."""

from __future__ import annotations

from typing import Final

from kubefoundry_conformance.cluster import (
    generations,
    handing_over,
    leaving,
    life,
    permissions,
    refusing,
    registering,
    selecting,
    swapping,
)
from kubefoundry_conformance.cluster.offered import offering

PROVIDER: Final = (
    *registering.REGISTRATION,
    *registering.process(registering.a_model),
    *life.CHECKS,
    *refusing.CHECKS,
    *generations.CHECKS,
    *handing_over.CHECKS,
    *leaving.CHECKS,
    *permissions.CHECKS,
)
"""In this order: the first ones see the CRD come, the last ones all that was asked for."""

SELECTOR: Final = (
    *selecting.CHECKS,
    *swapping.CHECKS,
    *registering.process(offering(selecting.chosen)),
    *permissions.CHECKS,
)
