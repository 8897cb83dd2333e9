"""Check whether a model's provider accepts a number of replicas before the number is written."""

from __future__ import annotations

import asyncio

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.live_objects import live_of
from kubefoundry_cli.model import invalid
from kubefoundry_cli.providers import as_running, in_cluster, installed
from kubefoundry_cli.requested import provider_after
from kubefoundry_cli.selection import with_spec
from kubefoundry_cli.spec_path import with_value
from kubefoundry_cli.upstream import refusals
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.validation import default, validate
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.contract import Provider


async def check_accepted(session: Session, obj: Object, replicas: int) -> None:
    """Ask the installed package of the model's provider whether it accepts the number, as `plan` does.

    Args:
        session: The cluster.
        obj: The stored ModelDeployment.
        replicas: The number.

    Raises:
        Failure: The provider would refuse the number. An unknown answer is no refusal.
    """
    spec = with_value(default(obj["spec"]), ("scaling", "replicas"), replicas)
    if (problems := validate(spec)) and not validate(obj["spec"]):
        raise invalid(obj, problems, Exit.USAGE)
    after = with_spec(obj, spec)
    try:
        chosen, _, _ = await provider_after(session, after)
    except Failure:
        chosen = provider_of(obj) or ""
    package = installed().get(chosen)
    if package is None:
        return
    name = obj["metadata"]["name"]
    try:
        reasons = await _refusals(session, package, after)
    except (ApiError, Unreachable) as error:
        raise of(error, f"ask whether {package.title} accepts ModelDeployment '{name}'") from error
    if reasons:
        raise Failure(
            f"{package.title} refuses ModelDeployment '{name}' with {replicas} "
            f"replica{'' if replicas == 1 else 's'}: {'; '.join(reasons)}. Nothing was changed"
        )


async def _refusals(session: Session, package: Provider, after: Object) -> tuple[str, ...]:
    """Return why the provider would refuse the ModelDeployment. Objects that the caller may not read do not count."""
    provider, settings, _ = await as_running(session.client, package)
    try:
        schema, _ = await in_cluster(session.client, provider, settings)
    except Failure as failure:
        return (
            refusals(provider, after, None, None)
            if failure.exit_code == Exit.FORBIDDEN
            else (failure.message,)
        )
    try:
        live = await live_of(session, provider.upstream.served(schema.api_version), after)
    except ApiError as error:
        if error.code != 403:
            raise
        live = None
    # A large spec takes seconds. In a thread it does not delay other requests of the page.
    return await asyncio.to_thread(refusals, provider, after, schema, live)
