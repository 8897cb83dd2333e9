"""`kubefoundry plan`: the upstream objects before and after, and the spec fields that each change comes from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kubefoundry_cli import cluster, output, upstream
from kubefoundry_cli.cluster import Session, Target
from kubefoundry_cli.engine import on_engine_of, on_serving_engine
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.live_objects import HandOver, check_helper_names, hand_over, helpers_of, live_of
from kubefoundry_cli.output import clean, say
from kubefoundry_cli.permission import remedy
from kubefoundry_cli.provenance import text
from kubefoundry_cli.providers import RELEASE_HELP, as_running, definitions, in_cluster, named, probed
from kubefoundry_cli.requested import Requested, all_requested, provider_after
from kubefoundry_cli.several import Failures
from kubefoundry_cli.spec_path import ABSENT
from kubefoundry_cli.storage_claims import missing_claim_notes
from kubefoundry_cli.suspension import check_not_deleted, suspensions
from kubefoundry_cli.upstream import Change, Planned
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.handover import holders
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._api.validation import warnings
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.reconcile import dry_run
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write.helpers import marked

if TYPE_CHECKING:
    from kubefoundry_cli.documents import PlanDocument, PlannedChange, PlannedHandOver

FROM_NOWHERE = "the provider's own"


@dataclass(frozen=True, slots=True)
class Trial:
    """The API server's answer to a dry run.

    Attributes:
        accepted: Whether the objects are accepted, None if the dry run was not possible.
        message: The API server's message.
        is_forbidden: Whether the caller lacks the permission for the dry run.
    """

    accepted: bool | None
    message: str
    is_forbidden: bool = False

    def __str__(self) -> str:
        if self.accepted:
            return "accepted"
        return f"{'not tried' if self.accepted is None else 'refused'}: {self.message}"


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--file", metavar="FILE", help="ModelDeployments; - reads standard input.")
@click.option(
    "--set", "edits", multiple=True, metavar="PATH=VALUE", help="Edit a field of the spec; repeatable."
)
@click.option(
    "--provider",
    "provider_name",
    metavar="NAME",
    help="Default: the provider that the model names or that is selected for it.",
)
@click.option(
    "--crd",
    "crds",
    multiple=True,
    metavar="FILE",
    help="CRD file of the upstream kind, if you may not read it from the cluster.",
)
@click.option("--release", metavar="V", help=RELEASE_HELP)
@click.option(
    "--server",
    is_flag=True,
    help="Also check with a server-side dry run whether the API server accepts the result.",
)
@output.option("text", "json", "yaml")
@cluster.options
def command(
    name: str | None,
    file: str | None,
    edits: tuple[str, ...],
    provider_name: str | None,
    crds: tuple[str, ...],
    release: str | None,
    server: bool,
    form: str,
    target: Target,
) -> None:
    """Show what an edit of a model would change upstream, and which spec field each change comes from.

    \b
    kubefoundry plan llama-8b --set engine.contextLength=16384
    kubefoundry plan -f llama-8b.yaml

    Exit code 0 whether or not something changes; 1 when the edit is refused, also by the dry run of --server. Of a
    file with several models, each is planned, and the exit code is the worst.
    """  # noqa: D301
    if bool(name) == bool(file):
        raise Failure("name a model, or give a file with -f", Exit.USAGE)
    if provider_name is not None:
        named(provider_name)
    options = Options(provider_name, crds, release, server, form)
    cluster.run(_plan(name, file, edits, options, target))


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command that are the same for each model."""

    provider: str | None
    crds: tuple[str, ...]
    release: str | None
    server: bool
    form: str


async def _plan(
    name: str | None, file: str | None, edits: tuple[str, ...], options: Options, target: Target
) -> None:
    failures = Failures()
    plans: list[PlanDocument] = []
    async with cluster.session(target) as session:
        models = await all_requested(session, name, file, edits)
        for model in models:
            with failures.of_one():
                await _plan_one(session, model, options, plans)
    if options.form != "text":
        output.one_or_all(plans, options.form, several=len(models) > 1)
    failures.end()


async def _plan_one(
    session: Session,
    model: Callable[[], Awaitable[Requested]],
    options: Options,
    plans: list[PlanDocument],
) -> None:
    """Print the plan of a model, or append its document. Raises Failure, also if the dry run is refused."""
    try:
        requested = await model()
        obj = requested.obj
        check_not_deleted(obj)
        held, doubts = suspensions(obj), warnings(obj["spec"])
        chosen, unsure = options.provider, list[str]()
        if chosen is None:
            chosen, obj, unsure = await provider_after(session, obj)
        provider, settings, started = await as_running(session.client, named(chosen))
        if options.provider:
            registered = dict.fromkeys(holders(obj), ()) | {chosen: provider.capabilities.engines}
            obj = on_engine_of(obj, chosen, registered)
        crds_by_name = definitions(options.crds, options.release, provider)
        if provider.upstream.crd in crds_by_name:
            schema, notes = probed(provider, crds_by_name[provider.upstream.crd]), list[str]()
        else:
            schema, notes = await in_cluster(session.client, provider, settings)
        kind = provider.upstream.served(schema.api_version)
        live, helpers = await live_of(session, kind, requested.obj), await helpers_of(session, provider, obj)
        obj = on_serving_engine(obj, requested.obj, live)
        planned = upstream.planned(provider, obj, schema, live, helpers)
        notes += await check_helper_names(session, provider, obj, planned.write_plan.helpers, helpers)
        notes += await missing_claim_notes(session, obj)
        changing = await hand_over(session, obj, provider, planned.write_plan.objects)
        trial = await _tried(session, provider, kind, planned, live, helpers) if options.server else None
    except (ApiError, Unreachable) as error:
        raise of(error, "plan") from error
    for note in (
        *requested.notes,
        *doubts,
        *unsure,
        *notes,
        *planned.notes,
        *started,
        *_versions(provider, schema),
    ):
        say(f"note: {clean(note)}")
    if options.form == "text":
        _show(kind, obj, planned, "; ".join([_what(planned, live, changing), *held]), trial)
    else:
        plans.append(_as_json(kind, obj, planned, changing, held, trial))
    if trial is not None:
        _check_accepted(trial, obj)


def _check_accepted(trial: Trial, obj: Object) -> None:
    """Raise Failure if the API server has refused the dry run."""
    if trial.is_forbidden:
        todo = remedy(trial.message)
        raise Failure(
            f"cannot try it with --server: {trial.message}{f'; {todo}' if todo else ''}", Exit.FORBIDDEN
        )
    if trial.accepted is False:
        raise Failure(
            f"the API server refuses these objects of ModelDeployment '{obj['metadata']['name']}' in a dry run, so "
            f"the edit would not be applied: {trial.message}"
        )


async def _tried(
    session: Session,
    provider: Provider,
    kind: Kind,
    planned: Planned,
    live: Object | None,
    helpers: list[Object],
) -> Trial:
    # As the provider's field manager. An apply of another one would leave fields that the provider has applied, such
    # as a variable's `valueFrom` beside its new `value`.
    manager = names.provider_manager(provider.name)
    answer = await dry_run.trial(
        session.client, kind, planned.write_plan, live, marked(helpers), manager=manager
    )
    if answer.lacking:
        # Not `answer.message`: its advice is for the provider's ServiceAccount, but the caller has sent the dry run.
        return Trial(None, answer.lacking, is_forbidden=True)
    return Trial(answer.accepted, answer.message)


def _versions(provider: Provider, schema: Schema) -> tuple[str, ...]:
    lost = f"; this CRD does not support: {', '.join(schema.lost)}" if schema.lost else ""
    flags = " ".join(f"{flag}={text}" for flag, text in sorted(provider.flags.items())) or "its defaults"
    return (f"rendered as {provider.name} {provider.version} renders it with {flags}{lost}",)


def _what(planned: Planned, live: Object | None, change: HandOver | None) -> str:
    write_plan = planned.write_plan
    if change:
        deleted = _listed(change.deleted) or "the object"
        return (
            f"HAND-OVER (creates {_listed(change.created)} on {change.to}; then deletes {deleted} of {change.from_}, "
            f"which serves until {change.to} can take over)"
        )
    if live is None:
        return "CREATED"
    if write_plan.recreate:
        return f"RECREATED ({write_plan.recreate})"
    # A new order of arguments is written, but is not in `planned.changes`.
    is_written = any(obj is write_plan.main for obj in write_plan.changed)
    return "CHANGED IN PLACE" if planned.changes or is_written else "UNCHANGED"


def _listed(objects: Sequence[str]) -> str:
    return " and ".join(objects)


def _show(kind: Kind, obj: Object, planned: Planned, what: str, trial: Trial | None) -> None:
    meta = obj["metadata"]
    suffix = f"   dry run: {clean(trial)}" if trial else ""
    print(f"{kind.kind} {meta['namespace']}/{meta['name']}   {clean(what)}{suffix}")
    for change in planned.changes:
        print(f"  {clean(text(change.path))}   ← {_source(change)}")
        for line in change.values():
            print(f"  {line}")
    print(f"  {planned.unchanged} {'other ' if planned.changes else ''}values unchanged")


def _source(change: Change) -> str:
    if change.reverts and not change.fields:
        return f"put back: changed by {clean(change.reverts)}"
    overwritten = f" (overwrites a change by {clean(change.reverts)})" if change.reverts else ""
    return _fields(change) + overwritten


def _fields(change: Change) -> str:
    return ", ".join(f"spec.{field}" for field in change.fields) or FROM_NOWHERE


def _as_json(
    kind: Kind,
    obj: Object,
    planned: Planned,
    change: HandOver | None,
    held: Sequence[str],
    trial: Trial | None,
) -> PlanDocument:
    return {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "namespace": obj["metadata"]["namespace"],
        "name": obj["metadata"]["name"],
        "recreate": planned.write_plan.recreate,
        "handOver": _handed_over(change) if change else None,
        "suspended": "; ".join(held) or None,
        "dryRun": str(trial) if trial else None,
        "changes": list(map(_change, planned.changes)),
        "unchanged": planned.unchanged,
    }


def _handed_over(change: HandOver) -> PlannedHandOver:
    return {
        "from": change.from_,
        "deleted": _listed(change.deleted) or "its object",
        "created": _listed(change.created),
    }


def _change(change: Change) -> PlannedChange:
    document: PlannedChange = {
        "path": text(change.path),
        "fields": [f"spec.{field}" for field in change.fields],
    }
    if change.reverts:
        document["changedBy"] = change.reverts
    if change.old is not ABSENT:
        document["old"] = change.old
    if change.new is not ABSENT:
        document["new"] = change.new
    return document
