"""`kubefoundry compat`: the effect of an upgrade of an upstream system on the models that run on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import asdict

import click

from kubefoundry_cli import cluster, output, upgrade
from kubefoundry_cli.cluster import Session, Target
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.health import provider_of
from kubefoundry_cli.output import clean, say
from kubefoundry_cli.providers import RELEASE_HELP, crd_file, crds_in, in_cluster, installed, named
from kubefoundry_cli.upgrade import Model, Outcome, Release
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import CRDS, HELPER_KINDS, Kind, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.validation import default, validate
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.helpers import whole


@click.command()
@click.argument("provider_name", metavar="PROVIDER", required=False)
@click.option("--crd", "files", multiple=True, metavar="FILE", help="The CRD of the release to come.")
@click.option(
    "--release",
    "release_name",
    metavar="V",
    help=RELEASE_HELP,
)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Models of all namespaces.")
@output.option("text", "json", "yaml")
@cluster.options
def command(
    provider_name: str | None,
    files: tuple[str, ...],
    release_name: str | None,
    everywhere: bool,
    form: str,
    target: Target,
) -> None:
    """Show what an upgrade of PROVIDER's upstream system would do to the models that run on it, before you do it.

    Which fields that they use would be lost, and which models would be rewritten, recreated or refused. Nothing is
    written.

    \b
    kubefoundry compat kuberay --crd ray.io_rayservices.yaml -A

    Exit code 0 when every model goes on as it is; 1 when not.
    """  # noqa: D301
    provider, crd = _provider_and_crd(provider_name, files, release_name)
    new, outcomes, notes = cluster.run(_compat(provider, crd, everywhere, target))
    for note in notes:
        say(f"note: {note}")
    if form == "text":
        _show(provider, new, outcomes)
    else:
        written = new.schema.api_version if new.schema else None
        output.data(
            {
                "provider": provider.name,
                "apiVersion": written,
                "missing": list(new.missing),
                "lost": list(new.lost),
                "models": [asdict(outcome) for outcome in outcomes],
            },
            form,
        )
    if new.schema is None or any(outcome.fate != "untouched" or outcome.lost for outcome in outcomes):
        raise SystemExit(Exit.NO)


def _crd_files(name: str | None, files: Sequence[str], release: str | None) -> Sequence[str]:
    if bool(files) == bool(release):
        raise Failure("give the CRD of the release to come: --crd FILE, or --release V", Exit.USAGE)
    if not release:
        return files
    if name is None:
        raise Failure(
            "--release needs PROVIDER, for example kubefoundry compat kuberay --release v1.7.0", Exit.USAGE
        )
    return [crd_file(named(name).name, release)]


def _provider_and_crd(name: str | None, files: Sequence[str], release: str | None) -> tuple[Provider, Object]:
    """Return the provider and the CRD of the new release. Raises Failure."""
    files = _crd_files(name, files, release)
    definitions = crds_in(files)
    providers = list(installed().values()) if name is None else [named(name)]
    matches = [
        provider
        for provider in providers
        if provider.upstream.version is None and provider.upstream.crd in definitions
    ]
    if len(matches) == 1:
        return matches[0], definitions[matches[0].upstream.crd]
    crds = ", ".join(provider.upstream.crd for provider in providers if provider.upstream.version is None)
    if not crds:
        raise Failure(
            f"provider {name} needs no CRD: an upgrade of Kubernetes changes nothing for it", Exit.USAGE
        )
    raise Failure(
        f"{', '.join(files)}: {'more than one' if matches else 'no'} CRD of a provider is in it; wanted: {crds}",
        Exit.USAGE,
    )


async def _compat(
    provider: Provider, crd: Object, everywhere: bool, target: Target
) -> tuple[Release, list[Outcome], list[str]]:
    async with cluster.session(target) as session:
        notes: list[str] = []
        try:
            schema, notes = await in_cluster(session.client, provider)
            settings = schema.discovered
        except Failure as failure:
            settings = {}
            notes.append(f"the CRD in the cluster: {failure.message}")
        except (ApiError, Unreachable) as error:
            raise of(error, f"read CRD {provider.upstream.crd}") from error
        new = upgrade.release(provider, crd, settings)
        try:
            models = await _models(session, provider, None if everywhere else session.namespace)
        except (ApiError, Unreachable) as error:
            raise of(error, "read the models and what they have upstream") from error
        return new, [upgrade.outcome(provider, new, model) for model in models], notes


async def _models(session: Session, provider: Provider, namespace: str | None) -> list[Model]:
    """Return the models that run on the provider, with their upstream objects."""
    listed, _ = await session.models(namespace)
    ours = [item for item in listed if provider_of(item) == provider.name and not validate(item["spec"])]
    if not ours:
        return []
    helpers = await _helpers(session, provider, namespace)
    by_owner = await _upstream_objects(session, provider, {_version(item) for item in ours}, namespace)
    return [
        Model(
            {**deployment, "spec": default(deployment["spec"])},
            by_owner.get(deployment["metadata"]["uid"]),
            [each for each in helpers if manifest.owner_uid(each) == deployment["metadata"]["uid"]],
        )
        for deployment in ours
    ]


async def _helpers(session: Session, provider: Provider, namespace: str | None) -> list[Object]:
    helpers: list[Object] = []
    for kind in map(HELPER_KINDS.__getitem__, provider.helper_kinds):
        objects, _ = await session.client.list(kind, namespace, selector=manifest.selector(provider.name))
        helpers += [whole(kind, obj) for obj in objects]
    return helpers


async def _upstream_objects(
    session: Session, provider: Provider, versions: Set[str | None], namespace: str | None
) -> dict[str, Object]:
    """Return the upstream objects of these versions by the uids of their models."""
    crd = await session.client.get(CRDS, provider.upstream.crd)
    stored = {served["name"] for served in crd["spec"]["versions"] if served.get("served")}
    live: dict[str, Object] = {}
    for version in sorted(stored & versions):
        kind = Kind(provider.upstream.group, version, provider.upstream.plural, provider.upstream.kind)
        objects, _ = await session.client.list(kind, namespace)
        live |= {obj["metadata"]["uid"]: whole(kind, obj) for obj in objects}
    return {uid: obj for obj in live.values() if (uid := manifest.owner_uid(obj))}


def _version(obj: Object) -> str | None:
    api_version = LiveModelDeployment(obj).provider.get("resourceAPIVersion")
    return str(api_version).rpartition("/")[2] if api_version else None


def _show(provider: Provider, new: Release, outcomes: Sequence[Outcome]) -> None:
    if new.schema is None:
        print(f"{provider.title}: unsupported: the CRD lacks {', '.join(new.missing)}")
    else:
        lost = f"; cannot be asked for: {', '.join(new.lost)}" if new.lost else ""
        print(f"{provider.title}: supported, written as {new.schema.api_version}{lost}")
    if not outcomes:
        say("no model runs on it here; -A looks in all namespaces")
        return
    output.table(
        ["MODEL", "OUTCOME", "FIELDS LOST", "WHY"],
        [[outcome.model, outcome.fate, _few(outcome.lost), outcome.why] for outcome in outcomes],
    )
    count = Counter(outcome.fate for outcome in outcomes)
    fates = ", ".join(f"{number} {fate}" for fate, number in count.items())
    say(f"{len(outcomes)} model{'' if len(outcomes) == 1 else 's'}: {fates}")


def _few(paths: Sequence[str]) -> str:
    return clean(first_of(paths)) or "-"
