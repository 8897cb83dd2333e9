"""`kubefoundry render`: the upstream objects of a file, without a cluster."""

from __future__ import annotations

from collections.abc import Mapping

import click

from kubefoundry_cli import output, upstream
from kubefoundry_cli.engine import on_engine, on_engine_of
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.model import all_from_file, valid_new
from kubefoundry_cli.output import say
from kubefoundry_cli.providers import RELEASE_HELP, crds_in, definitions, installed, named, probed
from kubefoundry_cli.selection import registered_packages, selected
from kubefoundry_cli.several import Failures
from kubefoundry_cli.storage_claims import claim_notes
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.contract import Provider


@click.command()
@click.option("-f", "--file", required=True, metavar="FILE", help="ModelDeployments; - reads standard input.")
@click.option(
    "--provider",
    "name",
    metavar="NAME",
    help="Provider name, or all. Default: the provider that the model names or that is selected for it.",
)
@click.option(
    "--crd",
    "crds",
    multiple=True,
    metavar="FILE",
    help="CRD file of the upstream kind; built-in kinds need none.",
)
@click.option("--release", metavar="V", help=RELEASE_HELP)
@click.option("--set", "edits", multiple=True, metavar="PATH=VALUE", help="Edit a field of the spec first.")
@output.option("yaml", "json")
def command(
    file: str,
    name: str | None,
    crds: tuple[str, ...],
    release: str | None,
    edits: tuple[str, ...],
    form: str,
) -> None:
    """Print the upstream objects of the ModelDeployments in FILE as their providers render them, without a cluster.

    \b
    kubefoundry render -f llama-8b.yaml --provider kuberay --crd ray.io_rayservices.yaml
    """  # noqa: D301
    if release and name == "all":
        raise Failure("--release is of one upstream system; name its provider", Exit.USAGE)
    if name == "all":
        _note_left_out(crds)
    failures, objects = Failures(), list[Object]()
    for obj in all_from_file(file, edits):
        with failures.of_one():
            objects += _rendered(valid_new(obj), name, crds, release)
    if objects and form == "yaml":
        output.documents(objects)
    elif objects:
        output.data(objects, form)
    failures.end()


def _note_left_out(crds: tuple[str, ...]) -> None:
    """Name the providers whose CRD is in none of the files. Raises Failure."""
    crds_by_name = crds_in(crds)
    for provider in installed().values():
        crd = provider.upstream.crd
        if not provider.upstream.schema and crd not in crds_by_name:
            say(f"note: provider {provider.name} is left out: CRD {crd} is in none of the files (--crd FILE)")


def _rendered(obj: Object, name: str | None, crds: tuple[str, ...], release: str | None) -> list[Object]:
    """Return the upstream objects of a model. Raises Failure if no provider renders it."""
    objects: list[Object] = []
    refused: list[str] = []
    if name is None and not LiveModelDeployment(obj).requested_provider:
        name, engine = _selected(obj)
        obj = on_engine(obj, engine)
    providers, crds_by_name = _providers(obj, name, crds, release)
    for provider in providers:
        try:
            schema = provider.upstream.schema or probed(provider, crds_by_name[provider.upstream.crd])
            on_provider = on_engine_of(obj, provider.name, {provider.name: provider.capabilities.engines})
            upstream_objects = upstream.as_new(provider, upstream.rendered(provider, on_provider, schema))
        except Failure as failure:
            refused.append(failure.message)
            continue
        for note in upstream_objects.notes:
            say(f"{provider.title}: {note}")
        objects += [*upstream_objects.helpers, upstream_objects.main]
    for note in claim_notes(obj) if objects else ():
        say(f"note: {note}")
    for words in refused:
        say(words)
    if not objects:
        raise Failure(f"no provider renders ModelDeployment '{obj['metadata']['name']}'")
    return objects


def _providers(
    obj: Object, name: str | None, crds: tuple[str, ...], release: str | None
) -> tuple[list[Provider], Mapping[str, Object]]:
    """Return the providers that render the model, and the CRDs by name. Raises Failure if a CRD is missing."""
    crds_by_name = crds_in(crds)
    if name == "all":
        providers = [item for item in installed().values() if _has_schema(item, crds_by_name)]
        if not providers:
            raise Failure("no CRD file belongs to an installed provider package", Exit.USAGE)
        return providers, crds_by_name
    if name is None:
        name = str(LiveModelDeployment(obj).requested_provider)
    provider = named(name)
    crds_by_name = definitions(crds, release, provider)
    if not _has_schema(provider, crds_by_name):
        raise Failure(
            f"CRD {provider.upstream.crd} is in none of the files; give it as --crd FILE or --release V",
            Exit.USAGE,
        )
    return [provider], crds_by_name


def _has_schema(provider: Provider, crds_by_name: Mapping[str, Object]) -> bool:
    return bool(provider.upstream.schema) or provider.upstream.crd in crds_by_name


def _selected(obj: Object) -> tuple[str, str | None]:
    """Return provider and engine that the selector chooses if every package is installed. Raises Failure if none.

    The engine is None if the spec names it.
    """
    packages = installed()
    decision = selected(obj, registered_packages(packages), packages)
    if decision.provider is None:
        raise Failure(
            f"no provider is selected for ModelDeployment '{obj['metadata']['name']}': {decision.text}"
        )
    say(f"provider {decision.provider} is selected: {decision.text}")
    return decision.provider, decision.engine
