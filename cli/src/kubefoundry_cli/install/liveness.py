"""Find out whether a provider runs, before a deletion that it has to clean up."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import of
from kubefoundry_cli.install import change
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import LEASES, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._runtime.lease import DURATION


async def stopped(session: Session, providers: Collection[str]) -> set[str]:
    """Return the providers that have a Lease which nobody holds, or nobody renews while this function waits.

    A provider that runs renews its Lease every 5 s. A heartbeat shows less: it is late after three minutes only. A
    provider without a Lease is not returned, because nothing shows whether it runs.

    Raises:
        Failure: A Lease cannot be read.
    """
    try:
        renewed = await asyncio.gather(*(_is_renewed(session, name) for name in providers))
    except (ApiError, Unreachable) as error:
        raise of(error, "read the Leases of providers") from error
    return {name for name, is_renewed in zip(providers, renewed, strict=True) if not is_renewed}


async def _is_renewed(session: Session, provider: str) -> bool:
    """Return False if the provider's Lease has no holder, or does not change for its duration."""
    first: Object | None = None

    def is_decided(lease: Object | None) -> bool:
        nonlocal first
        spec = _held(lease)
        first = first or spec
        return not spec or spec != first

    lease = f"kubefoundry-provider-{provider}"
    has_changed, last = await change.until(
        session, LEASES, names.SYSTEM_NAMESPACE, lease, is_decided, DURATION
    )
    return last is None or (has_changed and bool(_held(last)))


def _held(lease: Object | None) -> Object:
    """Return the spec of a Lease that has a holder, otherwise {}."""
    spec: Object = (lease or {}).get("spec") or {}
    return spec if spec.get("holderIdentity") else {}
