"""Try an adoption on the API server before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

from kubefoundry_cli.adoption import Adoption, content
from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Failure
from kubefoundry_cli.output import clean
from kubefoundry_cli.provenance import differing, text
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.helpers import kind_of, whole


async def try_adoption(
    session: Session, provider: Provider, kind: Kind, candidate: Adoption, live: Object
) -> None:
    """Have the API server apply the objects in a dry run.

    Only the API server knows which lists an apply replaces as a whole.

    Raises:
        Failure: The apply would change a value.
        ApiError: The API server refuses the apply.
    """
    manager = names.provider_manager(provider.name)
    for one_kind, target, current in pairs(candidate, await helpers_of(session, candidate), kind, live):
        await apply_in_dry_run(session, one_kind, target, current, manager)


async def helpers_of(session: Session, candidate: Adoption) -> list[Object]:
    """Return the live helpers that the ModelDeployment would render and that no ModelDeployment owns."""
    live_helpers = [
        await get(session, kind_of(helper), helper["metadata"]["name"])
        for helper in candidate.write_plan.helpers
    ]
    return [helper for helper in live_helpers if helper is not None and manifest.owner_name(helper) is None]


def pairs(
    candidate: Adoption, helpers: Sequence[Object], kind: Kind, live: Object
) -> list[tuple[Kind, Object, Object]]:
    """Return kind, target and live object of each object to adopt, helpers first."""
    by_name = {(helper["kind"], helper["metadata"]["name"]): helper for helper in helpers}
    pairs = [
        (kind_of(helper), helper, by_name[helper["kind"], helper["metadata"]["name"]])
        for helper in candidate.write_plan.helpers
    ]
    return [*pairs, (kind, candidate.write_plan.main, live)]


async def apply_in_dry_run(
    session: Session, kind: Kind, target: Object, live: Object, manager: str
) -> Object:
    """Apply the object in a dry run, and return the result.

    Raises:
        Failure: The apply would change a live value.
        ApiError: The API server refuses the apply.
    """
    meta = live["metadata"]
    identity = {part: meta[part] for part in ("uid", "resourceVersion")}
    body = {**target, "metadata": {**target["metadata"], **identity}}
    tried: Object = await session.client.apply(kind, body, manager=manager, dry_run=True)
    live_values = content(live)
    paths = [
        text(path) for path in sorted(differing(content(tried), live_values)) if live_values.get(path) != {}
    ]
    if paths:
        raise Failure(
            f"{kind.kind} '{meta['name']}' is not adopted: an apply would change {clean(', '.join(paths))}. "
            "Nothing of it was written; set there what the ModelDeployment renders (--dry-run) first"
        )
    return tried


async def get(session: Session, kind: Kind, name: str) -> Object | None:
    """Return the whole object, None if it does not exist. Raises ApiError."""
    try:
        return whole(kind, await session.client.get(kind, name, session.namespace))
    except ApiError as error:
        if error.not_found:
            return None
        raise
