"""`kubefoundry provider new|manifest`: for authors of providers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import yaml

from kubefoundry_cli import providers
from kubefoundry_cli.cluster import namespace_name
from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.new import template, upstream_crd
from kubefoundry_cli.output import say


@click.command(short_help="Write a new provider's package: code, tests, manifest, image recipe.")
@click.argument("name")
@click.option(
    "--folder", type=click.Path(path_type=Path), help="Where to; default: kubefoundry-provider-NAME."
)
@click.option(
    "--group", help="API group of the upstream kind; default: that of --crd, otherwise example.com."
)
@click.option(
    "--crd",
    "crd_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="CRD of the upstream kind: group, version, kind, plural and fields are taken from it.",
)
def new(name: str, folder: Path | None, group: str | None, crd_file: Path | None) -> None:
    """Write the package of provider NAME, whose tests pass as they are. Without --crd, replace its CRD later."""
    crd = upstream_crd.read(crd_file) if crd_file else None
    if crd and group not in (None, crd.group):
        raise Failure(f"{crd_file} is of group {crd.group}, not {group}: leave out --group", Exit.USAGE)
    target = folder or Path(f"kubefoundry-provider-{name}")
    contents = template.files(name, crd.group if crd else group or "example.com", crd)
    template.write(target, contents)
    lines = sum(text.count("\n") for path, text in contents.items() if path.endswith(".py"))
    say(
        f"wrote {len(contents)} files to {target} ({lines} lines of Python); {target}/README.md says what to do next"
    )


@click.command(short_help="Print the manifest that installs a provider whose package is installed here.")
@click.argument("name")
@click.option("--image", required=True, help="Image with the console script kubefoundry-provider-NAME.")
@click.option("--namespace", default="kubefoundry-system", show_default=True)
@click.option(
    "--kopf",
    metavar="PROGRAM",
    help="The image runs the provider in this operator, written in kopf (docs/kopf.md).",
)
def manifest(name: str, image: str, namespace: str, kopf: str | None) -> None:
    """Print account, rights and Deployment of provider NAME, made from what its package describes."""
    from kubefoundry_sdk._provider.installation import manifest as installation_manifest

    if not image.strip():
        raise Failure("--image is empty: name the image of the provider", Exit.USAGE)
    if kopf is not None and (not kopf.strip() or kopf.startswith("-")):
        raise Failure(f"--kopf '{kopf}' is no path: name the operator's file in the image", Exit.USAGE)

    namespace_name(namespace)
    objects = installation_manifest(providers.named(name), image, namespace=namespace, kopf=kopf)
    click.echo(yaml.safe_dump_all(_plain(objects), sort_keys=False), nl=False)


def _plain(value: Any) -> Any:
    """Return the value without shared parts, which YAML would write as anchors."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
