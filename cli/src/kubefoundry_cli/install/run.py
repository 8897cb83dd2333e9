"""Install a manifest on a cluster and remove it: show the plan, confirm it, apply it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import Final

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.edit import confirmed
from kubefoundry_cli.ejection import eject, owned_objects, remove
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.hint import kubectl
from kubefoundry_cli.install import change, liveness
from kubefoundry_cli.install.change import Change, Kinds
from kubefoundry_cli.install.refused import Refused, together
from kubefoundry_cli.install.rights import rights
from kubefoundry_cli.output import clean, say, since
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.handover import holders
from kubefoundry_sdk._api.kinds import CRDS, DEPLOYMENTS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.untrusted import part
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._runtime.options import HEARTBEAT_TIMEOUT

SHOWN = 8
"""Maximum number of values of an object, and of models, in a message."""


async def install(
    session: Session,
    objects: Sequence[Object],
    *,
    what: str,
    dry_run: bool,
    yes: bool,
    force: bool,
    wait: float | None,
    keeps_mirror: bool = False,
) -> None:
    """Show the plan and the requested rights, ask for a confirmation, and apply.

    Args:
        session: The cluster.
        objects: The objects of the manifest.
        what: The name of the manifest in messages.
        dry_run: Whether to show the plan only.
        yes: Whether to skip the confirmation.
        force: Whether to take over values of other managers.
        wait: Seconds to wait for the rollout; None not to wait.
        keeps_mirror: Whether to refuse the removal of a running process's `--mirror`.
    """
    changes = await change.plan(session, objects, force=force)
    if keeps_mirror:
        _keep_mirror(changes)
    _show(changes)
    todo = [entry for entry in changes if entry.state != "unchanged"]
    if not todo:
        say(f"{what} is up to date: nothing to do")
    elif dry_run:
        say(f"{len(todo)} of {len(changes)} objects would be written; nothing was")
        return
    else:
        confirmed(f"write {len(todo)} of {len(changes)} objects for {what} to {session.client.server}", yes)
        await change.apply(session, changes, force=force, written=_report)
        starts = wait is None and any(entry.kind.kind == DEPLOYMENTS.kind for entry in todo)
        unseen = "; whether its processes start was not awaited (--wait DURATION)" if starts else ""
        say(f"{what}: {len(todo)} object{'' if len(todo) == 1 else 's'} written{unseen}")
    if wait is not None:
        await change.rolled_out(session, changes, wait)
        say(f"{what} is up")


def _keep_mirror(changes: Sequence[Change]) -> None:
    """Raise Failure if a change removes `--mirror` from a Deployment."""
    for entry in changes:
        if entry.kind.kind != DEPLOYMENTS.kind:
            continue
        if (mirror := _mirror(entry.live)) and not _mirror(entry.body):
            raise Failure(
                f"{clean(entry.named)} runs with --mirror={clean(mirror)}, and the new images would come from "
                f"elsewhere; add --mirror {clean(mirror)}, or --mirror '' to remove it",
                Exit.USAGE,
            )


def _mirror(deployment: Object | None) -> str:
    """Return the value of a Deployment's `--mirror`, empty if it has none."""
    containers = deployment["spec"]["template"]["spec"]["containers"] if deployment else ()
    arguments = [text for container in containers for text in container.get("args") or ()]
    flag = "--mirror="
    return next((text.removeprefix(flag) for text in arguments if text.startswith(flag)), "")


DONE: Final = {"create": "created", "change": "changed"}
"""The verb of the report by the state of a written change."""


def _report(entry: Change) -> None:
    """Print the result of a write."""
    print(f"{DONE[entry.state]:11}  {clean(entry.named)}", flush=True)


def _show(changes: Sequence[Change]) -> None:
    """Print the plan: every object, the values that change, and the rights."""
    for entry in changes:
        plan = entry.state if entry.state == "unchanged" else f"will {entry.state}"
        print(f"{plan:11}  {clean(entry.named)}")
        for path in entry.paths[:SHOWN]:
            print(f"               {clean(path)}")
        if len(entry.paths) > SHOWN:
            print(f"               and {len(entry.paths) - SHOWN} more")
    _show_rights(changes)


def _show_rights(changes: Sequence[Change]) -> None:
    written = {
        f"{entry.kind.kind} {entry.body['metadata']['name']}"
        for entry in changes
        if entry.state != "unchanged"
    }
    new_rights = [right for right in rights([entry.body for entry in changes]) if right.role in written]
    if new_rights:
        print("\nrights:")
        for right in new_rights:
            print(f"{'! ' if right.risky else '  '}{clean(right.role)}: {clean(right.text)}")


async def models(session: Session, provider: str | None = None) -> list[Object]:
    """Return all ModelDeployments of the cluster, or those of a provider; none if the kind is not installed."""
    try:
        deployments, _ = await session.models(None)
    except Failure as failure:
        if isinstance(failure.__cause__, ApiError) and failure.__cause__.not_found:
            return []
        raise
    return [
        deployment for deployment in deployments if provider is None or provider_of(deployment) == provider
    ]


def refuse_while_needed(deployments: Sequence[Object], what: str) -> None:
    """Raise Failure if there are models."""
    if deployments:
        names_of = [
            clean(f"{deployment['metadata']['namespace']}/{deployment['metadata']['name']}")
            for deployment in deployments
        ]
        need = (
            "1 ModelDeployment needs"
            if len(deployments) == 1
            else f"{len(deployments)} ModelDeployments need"
        )
        raise Failure(
            f"{need} {what}: {first_of(names_of, SHOWN)}. Add --eject to keep them "
            "running unmanaged, or --delete-models"
        )


async def clear(
    session: Session,
    deployments: Sequence[Object],
    changes: Sequence[Change],
    what: str,
    *,
    eject: bool,
    yes: bool,
    seconds: float,
) -> None:
    """Show the objects to delete and ask for a confirmation, then eject or delete the models that need them.

    Args:
        session: The cluster.
        deployments: The models.
        changes: The objects that the caller deletes afterwards.
        what: The name of these objects in the confirmation prompt.
        eject: Whether to eject the models instead of deleting them.
        yes: Whether to skip the confirmation.
        seconds: Seconds to wait for the deletion of each model.

    Raises:
        Failure: A model cannot be ejected or deleted. Nothing is changed if that is known in advance.
    """
    await _check_models(session, deployments, eject=eject)
    to_delete = [] if eject else [Change(MODEL_DEPLOYMENTS, obj, obj) for obj in deployments]
    for entry in (*to_delete, *changes):
        print(f"will delete  {clean(entry.named)}")
    models = f"{len(to_delete)} ModelDeployments and " if to_delete else ""
    keeping = f", and keep {len(deployments)} models running unmanaged" if deployments and eject else ""
    confirmed(f"delete {models}{what} from {session.client.server}{keeping}", yes)
    if eject:
        await _eject_models(session, deployments)
    else:
        await _delete_models(session, to_delete, seconds)


async def _check_models(session: Session, deployments: Sequence[Object], *, eject: bool) -> None:
    """Raise Failure, before anything is written, if one of the models cannot be ejected or deleted."""
    refused: list[Refused] = []
    if eject:
        for deployment in filter(_has_upstream, deployments):
            try:
                await owned_objects(session, deployment)
            except Failure as failure:
                meta = deployment["metadata"]
                refused.append(
                    Refused(MODEL_DEPLOYMENTS.kind, f"{meta['namespace']}/{meta['name']}", failure)
                )
    else:
        refused = await _silent(session, deployments)
    if refused:
        raise together(refused, "nothing was changed")


async def _silent(session: Session, deployments: Sequence[Object]) -> list[Refused]:
    """Return a failure for each provider that has models to clean up, and is silent or does not run."""
    needed = Counter(provider for deployment in deployments for provider in _cleaning_providers(deployment))
    silent = await _silences(session, needed) if needed else {}
    return [
        Refused(
            PROVIDER_CONFIGS.kind,
            name,
            Failure(
                f"provider {name} {silent[name]}, and it would have to clean up {count} models; "
                f"start it, or keep them with --eject: "
                f"{kubectl(f'get deployment kubefoundry-provider-{name}', names.SYSTEM_NAMESPACE)}"
            ),
        )
        for name, count in sorted(needed.items())
        if name in silent
    ]


def _cleaning_providers(deployment: Object) -> list[str]:
    """Return the providers that have to clean up before the model is gone."""
    finalizers = LiveModelDeployment(deployment).finalizers
    return [
        provider
        for provider in {*holders(deployment), provider_of(deployment)}
        if provider and names.provider_finalizer(provider) in finalizers
    ]


async def _silences(session: Session, needed: Container[str]) -> dict[str, str]:
    """Return why each of these providers is silent, apart from those that are not. Raises Failure."""
    try:
        configs, _ = await session.client.list(PROVIDER_CONFIGS)
    except (ApiError, Unreachable) as error:
        raise of(error, "list InferenceProviderConfigs") from error
    ages = {
        config["metadata"]["name"]: since(part(config, "status").get("lastHeartbeat"))
        for config in configs
        if config["metadata"]["name"] in needed
    }
    silent = {
        name: f"has not reported for {age:.0f} s"
        for name, age in ages.items()
        if age is not None and age > HEARTBEAT_TIMEOUT
    }
    for name in await liveness.stopped(session, ages.keys() - silent.keys()):
        silent[name] = "does not run: nobody renews its Lease"
    return silent


def _has_upstream(obj: Object) -> bool:
    return bool(LiveModelDeployment(obj).provider.get("resourceName"))


async def _eject_models(session: Session, deployments: Sequence[Object]) -> None:
    """Eject the models; delete those without an upstream object. Raises Failure."""
    for deployment in deployments:
        name = clean(f"{deployment['metadata']['namespace']}/{deployment['metadata']['name']}")
        if _has_upstream(deployment):
            await eject(session, deployment)
            say(f"ejected {name}")
        else:
            say(f"{name} reports nothing upstream and is deleted")
            # A model that was imported and not resumed may own an object that it has not reported.
            await remove(session, deployment["metadata"])


async def _delete_models(session: Session, to_delete: Sequence[Change], seconds: float) -> None:
    """Delete the models while their providers can clean up, and wait until they are gone. Raises Failure."""
    await delete(session, to_delete)
    for entry in to_delete:
        await change.gone(session, entry.kind, entry.namespace, entry.body["metadata"]["name"], seconds)
        _report_deleted(entry)


def _report_deleted(entry: Change) -> None:
    print(f"{'deleted':11}  {clean(entry.named)}", flush=True)


async def existing(session: Session, objects: Sequence[Object], *, keep: Sequence[str] = ()) -> list[Change]:
    """Return the manifest's existing objects in the order of deletion, without the kinds of `keep`."""
    kinds = Kinds(session)
    candidates = [obj for obj in reversed(objects) if obj["kind"] not in keep]
    changes = [await change.existing(session, await kinds.of(obj), obj) for obj in candidates]
    return [entry for entry in changes if entry is not None]


async def delete(session: Session, changes: Sequence[Change], *, report: bool = False) -> None:
    """Delete exactly these objects, identified by uid.

    Args:
        session: The cluster.
        changes: The objects.
        report: Whether to print each object after the API server has accepted its deletion.

    Raises:
        Failure: An object cannot be deleted.
    """
    for number, entry in enumerate(changes):
        assert entry.live is not None
        try:
            await session.client.delete(
                entry.kind, entry.live["metadata"]["name"], entry.namespace, uid=entry.live["metadata"]["uid"]
            )
            if report:
                _report_deleted(entry)
        except (ApiError, Unreachable) as error:
            if not (isinstance(error, ApiError) and error.not_found):
                failure = of(error, f"delete {entry.named}")
                raise Failure(
                    f"{failure.message} ({number} of {len(changes)} objects were deleted; run the command again)",
                    Exit(failure.exit_code),
                ) from error


async def until_gone(session: Session, deleted: Sequence[Change], seconds: float) -> None:
    """Wait until the CRDs of the list are gone. Raises Failure after the timeout."""
    for entry in deleted:
        if entry.kind == CRDS:
            await change.gone(session, entry.kind, entry.namespace, entry.body["metadata"]["name"], seconds)
