"""`kubefoundry plan`: the upstream objects before and after, and which field each change comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kubefoundry_cli import cluster, output, upstream
from kubefoundry_cli.cluster import MANAGER, Session, Target
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.output import clean, say
from kubefoundry_cli.provenance import text
from kubefoundry_cli.providers import RELEASE_HELP, as_running, definitions, in_cluster, named, probed
from kubefoundry_cli.requested import provider_after, requested, suspended
from kubefoundry_cli.spec_path import ABSENT
from kubefoundry_cli.upstream import Change, Planned
from kubefoundry_sdk.api.handover import holders
from kubefoundry_sdk.api.kinds import HELPER_KINDS, Kind, Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.provider.contract import Provider
from kubefoundry_sdk.provider.reconcile import dry_run
from kubefoundry_sdk.provider.upstream_kind import Schema
from kubefoundry_sdk.provider.write import manifest
from kubefoundry_sdk.provider.write.helpers import marked, whole

if TYPE_CHECKING:
    from kubefoundry_cli.documents import PlanDocument, PlannedChange

FROM_NOWHERE = "the provider's own"


@dataclass(frozen=True, slots=True)
class HandOver:
    """From a provider to another. deleted: what the first one has."""

    from_: str
    to: str
    deleted: str


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--file", metavar="FILE", help="A ModelDeployment; - reads standard input.")
@click.option(
    "--set", "edits", multiple=True, metavar="PATH=VALUE", help="Edit a field of the spec; repeatable."
)
@click.option(
    "--provider",
    "provider_name",
    metavar="NAME",
    help="Default: the one that it names, or that is selected for it.",
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

    Exit code 0 whether or not something changes; 1 when the edit is refused.
    """
    if bool(name) == bool(file):
        raise Failure("name a model, or give a file with -f", Exit.USAGE)
    cluster.run(_plan(name, file, edits, provider_name, crds, release, server, form, target))


async def _plan(
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
    async with cluster.session(target) as session:
        try:
            obj = (await requested(session, name, file, edits)).obj
            suspensions = suspended(obj)
            chosen, unsure = (
                (provider_name, list[str]()) if provider_name else await provider_after(session, obj)
            )
            provider, settings, started = await as_running(session.client, named(chosen))
            given = definitions(crds, release, provider)
            if provider.upstream.crd in given:
                schema, notes = probed(provider, given[provider.upstream.crd]), list[str]()
            else:
                schema, notes = await in_cluster(session.client, provider, settings)
            kind = provider.upstream.served(schema.api_version)
            live, helpers = await live_of(session, kind, obj), await _helpers(session, provider, obj)
            planned = upstream.planned(provider, obj, schema, live, helpers)
            verdict = await _verdict(session, kind, planned, live, helpers) if server else None
        except (ApiError, Unreachable) as error:
            raise of(error, "plan") from error
    for note in (*unsure, *notes, *planned.notes, *started, *_versions(provider, schema)):
        say(f"note: {clean(note)}")
    hand_over = _handed_over(obj, provider)
    if form == "text":
        _show(kind, obj, planned, "; ".join([_what(planned, live, hand_over), *suspensions]), verdict)
    else:
        output.data(_as_json(kind, obj, planned, hand_over, suspensions, verdict), form)


async def live_of(session: Session, kind: Kind, obj: Object) -> Object | None:
    """The upstream object that is this ModelDeployment's, None where there is none. Raises Failure for another's."""
    meta = obj["metadata"]
    try:
        live = await session.client.get(kind, meta["name"], meta["namespace"])
    except ApiError as error:
        if error.not_found:
            return None
        raise
    whose = manifest.ownership(live, name=meta["name"], uid=meta["uid"])
    provider = (live["metadata"].get("labels") or {}).get(manifest.PROVIDER_LABEL, "")
    if whose == "foreign" and manifest.is_restored(live, name=meta["name"], provider=provider):
        # The provider adopts it.
        return live
    if whose == "foreign":
        raise Failure(
            f"{kind.kind} '{meta['name']}' exists in namespace {meta['namespace']} and is not this "
            "ModelDeployment's: rename the ModelDeployment, or delete that object"
        )
    return live if whose == "ours" else None


async def _helpers(session: Session, provider: Provider, obj: Object) -> list[Object]:
    meta, known = obj["metadata"], []
    for name in provider.helper_kinds:
        kind = HELPER_KINDS[name]
        found, _ = await session.client.list(
            kind, meta["namespace"], selector=manifest.selector(provider.name)
        )
        known += [whole(kind, one) for one in found if manifest.owner_uid(one) == meta["uid"]]
    return known


async def _verdict(
    session: Session, kind: Kind, planned: Planned, live: Object | None, helpers: list[Object]
) -> str:
    accepted, message = await dry_run.trial(
        session.client, kind, planned.todo, live is not None, marked(helpers), manager=MANAGER
    )
    return "accepted" if accepted else f"{'not tried' if accepted is None else 'refused'}: {message}"


def _versions(provider: Provider, schema: Schema) -> tuple[str, ...]:
    lost = f"; this CRD does not support: {', '.join(schema.lost)}" if schema.lost else ""
    flags = " ".join(f"{flag}={text}" for flag, text in sorted(provider.flags.items())) or "its defaults"
    return (f"rendered as {provider.name} {provider.version} renders it with {flags}{lost}",)


def _handed_over(obj: Object, provider: Provider) -> HandOver | None:
    """What another provider has, which goes once this one can take over; None where this one has it, or nobody."""
    serving = next((name for name in holders(obj) if name != provider.name), None)
    if serving is None:
        return None
    status = (obj.get("status") or {}).get("provider") or {}
    kind, name = status.get("resourceKind"), status.get("resourceName")
    return HandOver(serving, provider.name, f"{kind} '{name}'" if kind and name else "its object")


def _what(planned: Planned, live: Object | None, hand_over: HandOver | None) -> str:
    todo = planned.todo
    if hand_over:
        return (
            f"HAND-OVER (created by {hand_over.to}; {hand_over.deleted} of {hand_over.from_} serves until "
            f"{hand_over.to} can take over, and is deleted then)"
        )
    if live is None:
        return "CREATED"
    if todo.recreate:
        return f"RECREATED ({todo.recreate})"
    # a change of nothing but the order of arguments is written, too
    is_written = any(one is todo.main for one in todo.changed)
    return "CHANGED IN PLACE" if planned.changes or is_written else "UNCHANGED"


def _show(kind: Kind, obj: Object, planned: Planned, what: str, verdict: str | None) -> None:
    meta = obj["metadata"]
    asked = f"   dry run: {clean(verdict)}" if verdict else ""
    print(f"{kind.kind} {meta['namespace']}/{meta['name']}   {clean(what)}{asked}")
    for change in planned.changes:
        print(f"  {clean(text(change.path))}   ← {_source(change)}")
        for line in change.values():
            print(f"  {line}")
    print(f"  {planned.unchanged} {'other ' if planned.changes else ''}values unchanged")


def _source(change: Change) -> str:
    return ", ".join(f"spec.{field}" for field in change.fields) or FROM_NOWHERE


def _as_json(
    kind: Kind,
    obj: Object,
    planned: Planned,
    hand_over: HandOver | None,
    suspensions: Sequence[str],
    verdict: str | None,
) -> PlanDocument:
    return {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "namespace": obj["metadata"]["namespace"],
        "name": obj["metadata"]["name"],
        "recreate": planned.todo.recreate,
        "handOver": {"from": hand_over.from_, "deleted": hand_over.deleted} if hand_over else None,
        "suspended": "; ".join(suspensions) or None,
        "dryRun": verdict,
        "changes": list(map(_change, planned.changes)),
        "unchanged": planned.unchanged,
    }


def _change(change: Change) -> PlannedChange:
    made: PlannedChange = {"path": text(change.path), "fields": [f"spec.{field}" for field in change.fields]}
    if change.old is not ABSENT:
        made["old"] = change.old
    if change.new is not ABSENT:
        made["new"] = change.new
    return made
