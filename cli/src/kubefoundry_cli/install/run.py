"""Shown, asked, done: how a manifest comes to a cluster, and goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.edit import confirmed
from kubefoundry_cli.ejection import SECONDS, eject, made_for
from kubefoundry_cli.failure import Failure, of
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.hint import kubectl
from kubefoundry_cli.install import change
from kubefoundry_cli.install.change import Change, Kinds
from kubefoundry_cli.install.rights import rights
from kubefoundry_cli.output import clean, say, since
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.conditions import first_of
from kubefoundry_sdk.api.handover import holders
from kubefoundry_sdk.api.kinds import CRDS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk.api.live import LiveModelDeployment
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.runtime.options import HEARTBEAT_TIMEOUT

SHOWN = 8
"""Values of an object, and models, that are named at most."""


async def install(
    session: Session,
    objects: Sequence[Object],
    *,
    what: str,
    dry_run: bool,
    yes: bool,
    force: bool,
    wait: float | None,
) -> None:
    """Shows what would change and which rights are asked for, asks, applies.

    wait: seconds for the rollout; None not to wait.
    """
    changes = await change.plan(session, objects, force=force)
    _show(changes)
    todo = [one for one in changes if one.state != "unchanged"]
    if not todo:
        say(f"{what} is up to date: nothing to do")
    elif dry_run:
        say(f"{len(todo)} of {len(changes)} objects would be written; nothing was")
        return
    else:
        confirmed(f"write {len(todo)} of {len(changes)} objects for {what} to {session.client.server}", yes)
        await change.apply(session, changes, force=force, written=_report)
        say(f"{what} is installed: {len(todo)} objects written")
    if wait is not None:
        await change.rolled_out(session, changes, wait)
        say(f"{what} is up")


DONE: Final = {"create": "created", "change": "changed"}
"""By the state of a change that was written."""


def _report(one: Change) -> None:
    """Print the result of a write."""
    print(f"{DONE[one.state]:11}  {clean(one.named)}", flush=True)


def _show(changes: Sequence[Change]) -> None:
    """Print the plan: every object, the values that change, and the rights."""
    for one in changes:
        plan = one.state if one.state == "unchanged" else f"will {one.state}"
        print(f"{plan:11}  {clean(one.named)}")
        for path in one.paths[:SHOWN]:
            print(f"               {clean(path)}")
        if len(one.paths) > SHOWN:
            print(f"               and {len(one.paths) - SHOWN} more")
    written = {
        f"{one.kind.kind} {one.body['metadata']['name']}" for one in changes if one.state != "unchanged"
    }
    asked = [right for right in rights([one.body for one in changes]) if right.role in written]
    if asked:
        print("\nrights:")
        for right in asked:
            print(f"{'! ' if right.risky else '  '}{clean(right.role)}: {clean(right.text)}")


async def models(session: Session, provider: str | None = None) -> list[Object]:
    """All ModelDeployments of the cluster, or those of a provider; none where the kind is not installed."""
    try:
        found, _ = await session.client.list(MODEL_DEPLOYMENTS)
    except (ApiError, Unreachable) as error:
        failure = of(error, "list ModelDeployments")
        if isinstance(error, ApiError) and error.not_found:
            return []
        raise failure from error
    return [one for one in found if provider is None or provider_of(one) == provider]


def refuse_while_needed(found: Sequence[Object], what: str) -> None:
    """Raises Failure where there are models."""
    if found:
        names_of = [clean(f"{one['metadata']['namespace']}/{one['metadata']['name']}") for one in found]
        raise Failure(
            f"{len(found)} ModelDeployments need {what}: {first_of(names_of, SHOWN)}. Add --eject to keep them "
            "running unmanaged, or --delete-models"
        )


async def check_models(session: Session, found: Sequence[Object], *, eject: bool) -> None:
    """Raise Failure if one of the models cannot be ejected, or deleted, before anything is written."""
    refused: list[Failure] = []
    if eject:
        for one in filter(_has_upstream, found):
            try:
                await made_for(session, one)
            except Failure as failure:
                refused.append(failure)
    else:
        refused = await _silent(session, found)
    if refused:
        raise change.together(refused, "nothing was changed")


async def _silent(session: Session, found: Sequence[Object]) -> list[Failure]:
    """A failure for each provider that would have to clean up and does not report."""
    needed = Counter(
        provider
        for one in found
        for provider in {*holders(one), provider_of(one)}
        if provider and names.provider_finalizer(provider) in (one["metadata"].get("finalizers") or ())
    )
    try:
        configs, _ = await session.client.list(PROVIDER_CONFIGS) if needed else ([], "")
    except (ApiError, Unreachable) as error:
        raise of(error, "list InferenceProviderConfigs") from error
    silent = {
        one["metadata"]["name"]: since((one.get("status") or {}).get("lastHeartbeat")) for one in configs
    }
    return [
        Failure(
            f"provider {name} has not reported for {age:.0f} s and would have to clean up {count} models; "
            f"start it, or keep them with --eject: "
            f"{kubectl(f'get deployment kubefoundry-provider-{name}', names.SYSTEM_NAMESPACE)}"
        )
        for name, count in sorted(needed.items())
        if (age := silent.get(name)) is not None and age > HEARTBEAT_TIMEOUT
    ]


def _has_upstream(obj: Object) -> bool:
    return bool(LiveModelDeployment(obj).provider.get("resourceName"))


async def eject_models(session: Session, found: Sequence[Object]) -> None:
    """Lets them serve on without KubeFoundry; one without an upstream object is deleted. Raises Failure."""
    for one in found:
        name = clean(f"{one['metadata']['namespace']}/{one['metadata']['name']}")
        if _has_upstream(one):
            await eject(session, one)
            say(f"ejected {name}")
        else:
            say(f"{name} has nothing upstream and is deleted")
            await delete_models(session, [one], SECONDS)


async def delete_models(session: Session, found: Sequence[Object], seconds: float) -> None:
    """Deletes them and waits until they are gone: their providers can still clean up. Raises Failure."""
    await delete(session, [Change(MODEL_DEPLOYMENTS, one, one) for one in found])
    for one in found:
        meta = one["metadata"]
        await change.gone(session, MODEL_DEPLOYMENTS, meta["namespace"], meta["name"], seconds)


async def standing(session: Session, objects: Sequence[Object], *, keep: Sequence[str] = ()) -> list[Change]:
    """Those of a manifest's objects that are there, in the order of deletion. keep: kinds that are left alone."""
    kinds = Kinds(session)
    wanted = [obj for obj in reversed(objects) if obj["kind"] not in keep]
    found = [await change.standing(session, await kinds.of(obj), obj) for obj in wanted]
    return [one for one in found if one is not None]


def show_deletion(found: Sequence[Change]) -> None:
    """Print the plan of a deletion."""
    for one in found:
        print(f"will delete  {clean(one.named)}")


async def delete(session: Session, found: Sequence[Change], *, report: bool = False) -> None:
    """Delete those very objects. Raises Failure.

    report: print each one once the API server has accepted its deletion.
    """
    for one in found:
        assert one.live is not None
        try:
            await session.client.delete(
                one.kind, one.live["metadata"]["name"], one.namespace, uid=one.live["metadata"]["uid"]
            )
            if report:
                print(f"{'deleted':11}  {clean(one.named)}", flush=True)
        except (ApiError, Unreachable) as error:
            if not (isinstance(error, ApiError) and error.not_found):
                raise of(error, f"delete {one.named}") from error


async def until_gone(session: Session, deleted: Sequence[Change], seconds: float) -> None:
    """Until these CRDs are gone, which takes the API server a moment. Raises Failure where that takes too long."""
    for one in deleted:
        if one.kind == CRDS:
            await change.gone(session, one.kind, one.namespace, one.body["metadata"]["name"], seconds)
