"""SEL-1: the Lease of a selector."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from kubefoundry_conformance.check import Finding
from kubefoundry_conformance.cluster.offered import Offered, offering
from kubefoundry_conformance.cluster.rig import Rig, of_rig
from kubefoundry_conformance.cluster.selections import create_deployment, selected
from kubefoundry_conformance.cluster.settings import MANAGER, QUIET, RESTARTED
from kubefoundry_conformance.cluster.waiting import NotSeen
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import LEASES, Object
from kubefoundry_sdk._runtime.lease import DURATION, RENEW

LEASE: Final = (names.SELECTOR_LEASE, names.SYSTEM_NAMESPACE)
ANOTHER: Final = "another-replica"


def _holder(obj: Object) -> Any:
    return (obj.get("spec") or {}).get("holderIdentity")


async def check_renewal(rig: Rig) -> Finding | None:
    """Check that the selector holds its Lease, and renews it."""

    def renewal(obj: Object) -> Any:
        return _holder(obj) and obj["spec"].get("renewTime")

    first = renewal(await rig.there(LEASES, *LEASE, renewal))
    await rig.there(LEASES, *LEASE, lambda obj: renewal(obj) not in (None, first))
    return None


async def check_other_holder(rig: Rig, offered: Offered) -> Finding | None:
    """Check that the selector selects nothing while another replica holds the Lease.

    The check writes another holder into the Lease. The selector must wait until the Lease expires, and select then.
    """
    await rig.there(LEASES, *LEASE, _holder)
    change = [{"op": "replace", "path": "/spec/holderIdentity", "value": ANOTHER}]
    await rig.api.json_patch(LEASES, *LEASE, change, manager=MANAGER)
    try:
        lease = await rig.there(LEASES, *LEASE, lambda obj: _holder(obj) != ANOTHER, seconds=RENEW + QUIET)
        return Finding(f"{_holder(lease)!r} took the Lease from another replica at once", f"{DURATION:.0f} s")
    except NotSeen:
        pass
    await offered.register(ready={})
    place = rig.place()
    await create_deployment(rig, place)
    with suppress(NotSeen):
        live = await rig.deployment(place, selected, seconds=QUIET)
        # The other replica may have lost the Lease by now. Then the selection is right.
        if _holder(await rig.api.get(LEASES, *LEASE)) == ANOTHER:
            return Finding(
                f"{selected(live)} was selected while another replica held the Lease", "no decision"
            )
    await asyncio.sleep(DURATION - RENEW - QUIET)
    await rig.deployment(place, selected, seconds=RESTARTED)
    return None


CHECKS: Final = (
    of_rig("SEL-1", "the Lease, twice renewed", check_renewal, "a Lease with another renewTime"),
    of_rig(
        "SEL-1",
        "the Lease, held by another replica",
        offering(check_other_holder),
        "a selection once it has expired",
    ),
)
