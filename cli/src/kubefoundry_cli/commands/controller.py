"""`kubefoundry controller install|upgrade|migrate|uninstall|status`: CRDs, core and selector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from kubefoundry_cli import cluster, output, server
from kubefoundry_cli.checks.examination import UNKNOWN, components, held, holder_of, leases_of, outside
from kubefoundry_cli.cluster import Session, Target
from kubefoundry_cli.edit import YES
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.hint import hint
from kubefoundry_cli.install import bundle, run, storage
from kubefoundry_cli.install.options import (
    EJECT,
    FORCE,
    MIRROR,
    REGISTRY,
    TIMEOUT,
    WAIT,
    dry_run,
    in_its_namespace,
    one_of,
)
from kubefoundry_cli.install.origin import of_release
from kubefoundry_cli.output import say
from kubefoundry_sdk._api import names, selectable_fields
from kubefoundry_sdk._api.kinds import CRDS, DEPLOYMENTS, LEASES, MODEL_DEPLOYMENTS, NAMESPACES, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

WHAT = "KubeFoundry (CRDs, core, selector)"


@click.group()
def command() -> None:
    """Install, upgrade or remove core and selector."""


@command.command(short_help="Install, or bring to this version.")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Install everything in the install.yaml of a release: its folder, or the file.",
)
@REGISTRY
@MIRROR
@WAIT
@FORCE
@dry_run
@YES
@cluster.options
def install(
    source: Path | None,
    registry: str | None,
    mirror: str | None,
    wait: float | None,
    force: bool,
    dry_run: bool,
    yes: bool,
    target: Target,
) -> None:
    """Install the CRDs, core and selector, or bring what is there to this version.

    Shows every object that would be written and every right that is asked for, and asks before it writes. Then a
    provider is needed: kubefoundry provider install NAME. It downloads nothing. --from takes the manifests of another
    release, which include the providers.
    """
    in_its_namespace(target)
    if source:
        origin, text = of_release(source)
        manifests, what = bundle.released(text, origin), f"KubeFoundry (everything in {origin})"
    else:
        manifests, what = [*bundle.crds(), *bundle.controller()], WHAT

    async def work() -> None:
        async with cluster.session(target) as session:
            release = await server.supported(session)
            try:
                installed = await storage.live(session)
            except Failure as failure:
                if failure.exit_code != Exit.FORBIDDEN:
                    raise
                # `run.install` reports it, together with the other objects that cannot be read.
                installed = {}
            crds = [obj for obj in manifests if obj["kind"] == CRDS.kind]
            others = [obj for obj in manifests if obj["kind"] != CRDS.kind]
            objects = [*_crds(crds, installed, release), *bundle.from_registry(others, registry, mirror)]
            await run.install(
                session,
                objects,
                what=what,
                dry_run=dry_run,
                yes=yes,
                force=force,
                wait=wait,
                keeps_mirror=mirror is None,
            )

    cluster.run(work())


def _crds(crds: Sequence[Object], installed: Mapping[str, Object], release: str) -> list[Object]:
    """Return the CRDs, with the storage version and the selectable fields of the installed ones.

    A new CRD has selectable fields if the API server of this release supports them. A CRD that kubectl has applied
    stays as it is: kubectl owns all of `versions`, so a change would be a conflict.
    """
    if (live := installed.get(MODEL_DEPLOYMENTS.crd)) is None:
        selectable = server.at_least(release, selectable_fields.SINCE)
    else:
        selectable = selectable_fields.present(live)
    versions = {name: storage.storage_version(crd) for name, crd in installed.items()}
    return storage.stored_in([selectable_fields.added(crd) for crd in crds] if selectable else crds, versions)


command.add_command(install, "upgrade")


@command.command(short_help="Store all objects in one version of the API.")
@click.option(
    "--to",
    type=click.Choice(storage.VERSIONS),
    help="The version to store objects in. Default: the storage version of the installed CRDs.",
)
@FORCE
@dry_run
@YES
@cluster.options
def migrate(to: str | None, force: bool, dry_run: bool, yes: bool, target: Target) -> None:
    """Store all ModelDeployments and InferenceProviderConfigs in one version of the API.

    Both versions stay served and have the same fields, so no user and no process notices. Each object is written once
    without a change. It can be interrupted and run again. Before a roll back to a release that does not know v1beta1:
    kubefoundry controller migrate --to v1alpha1
    """
    in_its_namespace(target)

    async def work() -> None:
        async with cluster.session(target) as session:
            release = await server.supported(session)
            installed = await storage.live(session)
            if not installed:
                raise Failure(f"KubeFoundry is not installed; {hint('controller install')}", Exit.NO_CLUSTER)
            if to:
                crds = storage.stored_in(
                    _crds(bundle.crds(), installed, release), dict.fromkeys(installed, to)
                )
                what = f"CRDs that store {to}"
                await run.install(session, crds, what=what, dry_run=dry_run, yes=yes, force=force, wait=None)
                installed = storage.planned(installed, crds) if dry_run else await storage.live(session)
            await _move(session, installed, dry_run=dry_run)

    cluster.run(work())


async def _move(session: Session, installed: Mapping[str, Object], *, dry_run: bool) -> None:
    for kind in storage.OURS:
        if (crd := installed.get(kind.crd)) is None:
            continue
        version, others = storage.storage_version(crd), ", ".join(storage.outdated(crd))
        if not others:
            say(f"{kind.kind}: all objects are stored in {version}; nothing to do")
        elif dry_run:
            say(
                f"{kind.kind}: objects that are stored in {others} would move to {version}; nothing was written"
            )
        else:
            number = await storage.move(session, kind, crd, say)
            say(f"{kind.kind}: all {number} objects are stored in {version}")


@command.command(short_help="Remove it; refuses while there are models.")
@EJECT
@click.option("--delete-models", is_flag=True, help="Delete every ModelDeployment of the cluster first.")
@click.option("--crds", is_flag=True, help="Delete the CRDs, too.")
@TIMEOUT
@YES
@cluster.options
def uninstall(
    eject: bool, delete_models: bool, crds: bool, timeout: float, yes: bool, target: Target
) -> None:
    """Remove core, selector and the providers that come with this command line.

    Refuses while there are ModelDeployments, unless --eject keeps what they run, or --delete-models deletes them;
    their providers go after they have cleaned up. The CRDs stay, unless --crds deletes them.
    """
    in_its_namespace(target)
    one_of(eject, delete_models)

    async def work() -> None:
        async with cluster.session(target) as session:
            deployments = await run.models(session)
            if not (delete_models or eject):
                run.refuse_while_needed(deployments, "KubeFoundry")
            objects = [
                # Deleted after core, which would apply it again, and before the CRDs.
                bundle.protection(),
                *bundle.controller(),
                *(obj for name in bundle.providers() for obj in bundle.provider(name)),
            ]
            changes = await run.existing(session, objects)
            if crds:
                changes += await run.existing(session, bundle.crds())
            if not changes:
                say("KubeFoundry is not installed: nothing to do")
                return
            what = f"{len(changes)} objects"
            await run.clear(session, deployments, changes, what, eject=eject, yes=yes, seconds=timeout)
            await run.delete(session, changes, report=True)
            await run.until_gone(session, changes, timeout)
            left = await run.existing(
                session, [change.body for change in changes if change.kind == NAMESPACES]
            )
            say(
                f"KubeFoundry is removed{''.join(f'; {namespace.named} is terminating' for namespace in left)}"
            )

    cluster.run(work())


@command.command()
@output.option(*output.LISTS)
@cluster.options
def status(form: str, target: Target) -> None:
    """Show whether core, selector and the providers' processes are up.

    For programs, a process is its Deployment, or its Lease if it runs outside the cluster.
    """
    in_its_namespace(target)

    async def work() -> bool:
        async with cluster.session(target) as session:
            try:
                deployments, _ = await session.client.list(DEPLOYMENTS, names.SYSTEM_NAMESPACE)
            except (ApiError, Unreachable) as error:
                raise of(error, f"list Deployments of namespace {names.SYSTEM_NAMESPACE}") from error
            listed, refused = await leases_of(session)
            if refused and not deployments:
                raise Failure(f"{UNKNOWN}: {refused.message}", Exit(refused.exit_code))
            if refused:
                say(refused.message)
            leases = listed or []
            elsewhere = [lease for lease in leases if outside(lease, deployments)]
            if not deployments and not elsewhere:
                raise Failure(f"KubeFoundry is not installed; {hint('controller install')}", Exit.NO_CLUSTER)
            findings = list(components(deployments, leases))
            stored = [*deployments, *({**output.type_of(LEASES), **lease} for lease in elsewhere)]
            output.objects(
                stored, form, DEPLOYMENTS, lambda wide: _rows(deployments, elsewhere, leases, wide=wide)
            )
            return all(finding.state == "good" for finding in findings)

    if not cluster.run(work()):
        raise SystemExit(Exit.NO)


def _rows(
    deployments: Sequence[Object], elsewhere: Sequence[Object], leases: Sequence[Object], *, wide: bool
) -> tuple[list[str], list[list[str]]]:
    """Return head and cells. `elsewhere` has the Leases of processes without a Deployment in the cluster."""
    holders = {lease["metadata"]["name"]: holder_of(lease) for lease in leases}
    rows = [
        [*_row(deployment), holders.get(deployment["metadata"]["name"], "-")] for deployment in deployments
    ]
    for lease in elsewhere:
        name = lease["metadata"]["name"]
        state = "outside this cluster" if held(lease) else "no Deployment in this cluster"
        rows.append([name, "-", f"{state}: Lease held by {holders[name]}", holders[name]])
    head = ["NAME", "READY", "IMAGE", "LEASE HELD BY"]
    return (head, rows) if wide else (head[:-1], [row[:-1] for row in rows])


def _row(deployment: Object) -> list[str]:
    up = (deployment.get("status") or {}).get("availableReplicas", 0)
    images = [each["image"] for each in deployment["spec"]["template"]["spec"]["containers"]]
    return [
        deployment["metadata"]["name"],
        f"{up}/{deployment['spec'].get('replicas', 1)}",
        ", ".join(images),
    ]
