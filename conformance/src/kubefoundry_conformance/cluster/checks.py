"""All checks of processes."""

from __future__ import annotations

from typing import Final

from kubefoundry_conformance.cluster import (
    dropping,
    generations,
    handing_over,
    leaving,
    life,
    permissions,
    refusing,
    registering,
    replacing,
    selecting,
    selections,
    swapping,
)
from kubefoundry_conformance.cluster.offered import offering

PROVIDER: Final = (
    *registering.REGISTRATION,
    *registering.process_checks(registering.run_model),
    *dropping.CHECKS,
    *life.CHECKS,
    *refusing.CHECKS,
    *generations.CHECKS,
    *replacing.CHECKS,
    *handing_over.CHECKS,
    *leaving.CHECKS,
    *permissions.CHECKS,
)
"""The order matters: the first checks run before the CRD is installed, the last ones read all requests."""

SELECTOR: Final = (
    *selecting.CHECKS,
    *swapping.CHECKS,
    *registering.process_checks(offering(selections.create_selected)),
    *permissions.CHECKS,
)
