"""`kubefoundry import`: a ModelDeployment for an upstream object that serves already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from kubefoundry_cli import adoption, cluster, ejection, output, owner_permission
from kubefoundry_cli.adoption import Adoption
from kubefoundry_cli.adoption_trial import apply_in_dry_run, get, helpers_of, pairs, try_adoption
from kubefoundry_cli.cluster import MANAGER, Session, Target
from kubefoundry_cli.edit import (
    TRIES,
    YES,
    Operations,
    confirmed,
    guarded,
    guarded_patch,
    user_content,
)
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.hint import hint, kubectl
from kubefoundry_cli.operations import resumed
from kubefoundry_cli.output import clean, say
from kubefoundry_cli.provenance import text
from kubefoundry_cli.providers import as_running, in_cluster, installed, named
from kubefoundry_cli.writer import writer_of
from kubefoundry_sdk._api import foreign_text, names
from kubefoundry_sdk._api.kinds import HELPER_KINDS, MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import documents, manifest
from kubefoundry_sdk._provider.write.helpers import whole


@click.command()
@click.argument("object_", metavar="KIND/NAME")
@click.option("--provider", "provider_name", metavar="NAME", help="Default: the one that writes this kind.")
@click.option("--dry-run", is_flag=True, help="Print the ModelDeployment and write nothing.")
@YES
@cluster.options
def command(object_: str, provider_name: str | None, dry_run: bool, yes: bool, target: Target) -> None:
    """Make a ModelDeployment for an upstream object that serves already: a Workspace, a DynamoGraphDeployment, a
    RayService, or a Deployment of provider direct.

    It is adopted only where its ModelDeployment renders exactly that object, so nothing restarts. Otherwise the
    values that would change are shown, nothing is written, and the exit code is 1.

    \b
    kubefoundry import rayservice/llama
    """  # noqa: D205, D301
    kind, slash, name = object_.partition("/")
    if not (kind and slash and name) or "/" in name:
        raise Failure(
            f"{foreign_text.shown(object_)}: write KIND/NAME, for example rayservice/llama", Exit.USAGE
        )
    cluster.object_name(name, "an object's name")
    packages = installed() if provider_name is None else {provider_name: named(provider_name)}
    cluster.run(_import(packages, kind, name, dry_run, yes, target))


async def _import(
    packages: Mapping[str, Provider], given: str, name: str, dry_run: bool, yes: bool, target: Target
) -> None:
    async with cluster.session(target) as session:
        provider = await writer_of(session, given, packages)
        try:
            provider, settings, started = await as_running(session.client, provider)
            schema, notes = await in_cluster(session.client, provider, settings)
            kind = provider.upstream.served(schema.api_version)
            live = await _read(session, kind, name)
            candidate = adoption.adoption(provider, schema, live, await _helpers(session, provider, live))
            # The rendered names show which helpers belong to the object.
            candidate = adoption.compared(
                provider, schema, candidate.obj, live, await helpers_of(session, candidate)
            )
        except (ApiError, Unreachable) as error:
            raise of(error, f"read {provider.upstream.kind} '{name}'") from error
        for note in (*started, *notes):
            say(f"note: {note}")
        if dry_run or not candidate.fits:
            output.documents([_without_server_fields(candidate.obj)])
        if not candidate.fits:
            raise _refused(candidate, live)
        try:
            await try_adoption(session, provider, kind, candidate, live)
        except (ApiError, Unreachable) as error:
            doing = f"try to adopt {kind.kind} '{name}'"
            raise await owner_permission.failure(session, error, kind, doing) from error
        if dry_run:
            say(f"{kind.kind} '{name}' can be adopted as it is; nothing was written")
            return
        confirmed(
            f"create ModelDeployment '{name}' in namespace {session.namespace}, which takes {kind.kind} '{name}' "
            "over as it is; whoever applied it before must stop doing so",
            yes,
        )
        await _adopt(session, provider, schema, kind, live, candidate)
    say(f"{kind.kind} '{name}' is adopted as ModelDeployment '{name}'; {hint(f'status {name}')}")


async def _read(session: Session, kind: Kind, name: str) -> Object:
    """Return the whole object. Raises Failure if no ModelDeployment can adopt it."""
    try:
        live = await session.client.get(kind, name, session.namespace)
    except ApiError as error:
        if not error.not_found:
            raise
        raise Failure(f"{kind.kind} '{name}' not found in namespace {session.namespace}") from error
    live = whole(kind, live)
    meta = live["metadata"]
    if owner := manifest.owner_name(live):
        raise Failure(
            f"{kind.kind} '{name}' belongs to ModelDeployment '{owner}' already; {hint(f'status {owner}')}"
        )
    if meta.get("deletionTimestamp"):
        raise Failure(f"{kind.kind} '{name}' is being deleted: nothing to adopt")
    for reference in meta.get("ownerReferences") or ():
        if reference.get("controller"):
            raise Failure(
                f"{kind.kind} '{name}' is controlled by {reference.get('kind')} '{clean(reference.get('name'))}', "
                "which would undo every change: adopt it from there"
            )
    return live


async def _helpers(session: Session, provider: Provider, live: Object) -> list[Object]:
    """Return the helpers that the object names, for providers whose helpers are named in the object."""
    helper_names = {documents.at(live, path.split(".")) for path in provider.named_by_content}
    helpers = [
        await get(session, HELPER_KINDS[kind], name)
        for kind in provider.helper_kinds
        for name in helper_names
        if isinstance(name, str)
    ]
    return [helper for helper in helpers if helper is not None]


def _without_server_fields(obj: Object) -> Object:
    meta = {key: obj["metadata"][key] for key in ("name", "namespace")}
    return {**obj, "metadata": meta}


def _refused(candidate: Adoption, live: Object) -> Failure:
    say("the closest ModelDeployment is above; its render differs from the object (- object, + render):")
    for change in candidate.changes:
        say(f"  {clean(text(change.path))}")
        for line in change.values():
            say(f"  {line}")
    for helper in candidate.missing:
        say(f"  {clean(helper)} is not there")
    count = len(candidate.changes) + len(candidate.missing)
    return Failure(
        f"{live['kind']} '{live['metadata']['name']}' is not adopted: {count} "
        f"value{'s' if count > 1 else ''} would change. Nothing was written; change them there first, or deploy the "
        "ModelDeployment above under another name"
    )


async def _adopt(
    session: Session, provider: Provider, schema: Schema, kind: Kind, live: Object, candidate: Adoption
) -> None:
    """Create the paused ModelDeployment, mark the objects as its own, and resume it."""
    name, manager = live["metadata"]["name"], names.provider_manager(provider.name)
    body = _without_server_fields(candidate.obj)
    body["metadata"]["annotations"] = {names.PAUSED_ANNOTATION: "true"}
    try:
        created = await session.client.create(MODEL_DEPLOYMENTS, body, manager=MANAGER)
    except (ApiError, Unreachable) as error:
        if isinstance(error, ApiError) and error.reason == "AlreadyExists":
            raise await _taken(session, kind, name) from error
        raise of(error, f"create ModelDeployment '{name}'") from error
    touched: list[tuple[Kind, Object]] = []
    try:
        helpers = await helpers_of(session, candidate)
        whose = {key: value for key, value in created["metadata"].items() if key != "annotations"}
        write_plan = adoption.compared(provider, schema, {**created, "metadata": whose}, live, helpers)
        if not write_plan.fits:
            raise _refused(write_plan, live)
        for one_kind, target, current in pairs(write_plan, helpers, kind, live):
            touched.append((one_kind, current))
            await _mark(session, one_kind, target, current, manager, created)
    except (Failure, ApiError, Unreachable) as error:
        await _withdraw(session, created, touched, manager)
        if isinstance(error, Failure):
            raise
        raise await owner_permission.failure(session, error, kind, f"adopt {kind.kind} '{name}'") from error
    await _resume(session, created)


async def _taken(session: Session, kind: Kind, name: str) -> Failure:
    """Return why the name of the ModelDeployment is not free: maybe another import is about to mark the object."""
    where = f"namespace {session.namespace}"
    try:
        live, model = await get(session, kind, name), await get(session, MODEL_DEPLOYMENTS, name)
    except (ApiError, Unreachable) as error:
        return of(error, f"read {kind.kind} '{name}'")
    if live is not None and (owner := manifest.owner_name(live)):
        return Failure(
            f"{kind.kind} '{name}' belongs to ModelDeployment '{owner}' already; {hint(f'status {owner}')}"
        )
    state = None if model is None else LiveModelDeployment(model)
    if state is None or (state.is_paused and not state.provider.get("resourceName")):
        return Failure(
            f"ModelDeployment '{name}' already exists in {where}, and reports no upstream object: somebody else may "
            f"be importing {kind.kind} '{name}'. Import it again; if nobody does, first "
            f"{kubectl(f'delete modeldeployment {name} --cascade=orphan', session.namespace)}"
        )
    return Failure(
        f"ModelDeployment '{name}' already exists in {where}, and {kind.kind} '{name}' is not its own: delete one of "
        "the two first"
    )


async def _mark(
    session: Session, kind: Kind, target: Object, live: Object, manager: str, created: Object
) -> None:
    """Write owner, labels, record and field ownership to the object, and leave its content alone.

    An apply would write the content even with equal values: operators put empty maps into lists that an apply
    replaces. A status that the operator writes meanwhile stops neither of the two patches.

    Raises:
        Failure: The object cannot be adopted.
        ApiError: The API server refuses a patch.
    """
    for attempt in range(TRIES):
        try:
            tried = await apply_in_dry_run(session, kind, target, live, manager)
            await _check_kept(session, kind, created)
            marked = await _marked(session, kind, live, tried)
            break
        except ApiError as error:
            now = await session.client.get(kind, live["metadata"]["name"], live["metadata"]["namespace"])
            if not error.conflict or attempt + 1 == TRIES or user_content(now) != user_content(live):
                raise
            live = {**live, "metadata": now["metadata"]}

    def owned(now: Object) -> Operations:
        owners = adoption.taken_over(now, tried, manager)
        return [{"op": "replace", "path": "/metadata/managedFields", "value": owners}]

    await guarded_patch(session, kind, marked, owned)


async def _check_kept(session: Session, kind: Kind, created: Object) -> None:
    """Raise Failure if the ModelDeployment was deleted: its objects would be deleted with it. Raises ApiError."""
    name, uid = created["metadata"]["name"], created["metadata"]["uid"]
    now = await get(session, MODEL_DEPLOYMENTS, name)
    if now is None or now["metadata"]["uid"] != uid or now["metadata"].get("deletionTimestamp"):
        raise Failure(
            f"ModelDeployment '{name}' was deleted meanwhile: {kind.kind} '{name}' is not adopted, and stays as it is"
        )


async def _marked(session: Session, kind: Kind, live: Object, tried: Object) -> Object:
    """Write owner, labels and record of the dry run to the object, and return it. Raises ApiError."""
    meta = live["metadata"]
    marks = [
        {"op": "add", "path": f"/metadata/{part}", "value": tried["metadata"][part]}
        for part in ("ownerReferences", "labels", "annotations")
    ]
    name, namespace = meta["name"], meta["namespace"]
    return await session.client.json_patch(kind, name, namespace, [*guarded(live), *marks], manager=MANAGER)


async def _resume(session: Session, created: Object) -> None:
    """Resume the ModelDeployment, even if its status has changed meanwhile. Raises Failure."""
    meta = created["metadata"]
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
        *resumed(created),
    ]
    try:
        await session.client.json_patch(
            MODEL_DEPLOYMENTS, meta["name"], meta["namespace"], operations, manager=MANAGER
        )
    except (ApiError, Unreachable) as error:
        raise of(error, f"resume ModelDeployment '{meta['name']}', which is adopted and paused") from error


async def _withdraw(
    session: Session, created: Object, touched: Sequence[tuple[Kind, Object]], manager: str
) -> None:
    """Roll back: remove the marks from the objects, then the ModelDeployment. The command can then be run again."""
    meta: Mapping[str, str] = created["metadata"]
    try:
        for kind, obj in touched:
            await ejection.release(session, kind, obj, meta["uid"], manager)
        await ejection.remove(session, meta)
    except (Failure, ApiError, Unreachable) as error:
        say(
            f"ModelDeployment '{meta['name']}' could not be removed again: {error}; "
            f"{kubectl('delete modeldeployment ' + meta['name'] + ' --cascade=orphan', meta['namespace'])}"
        )
