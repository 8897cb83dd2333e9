"""`kubefoundry images`: every image that a cluster can pull."""

from __future__ import annotations

import click

from kubefoundry_cli import output
from kubefoundry_cli.install import bundle
from kubefoundry_sdk._api.images import in_registry


@click.command()
@click.option(
    "--registry",
    metavar="PREFIX",
    help="Show the references of copies in this registry, for example registry.example.com/kubefoundry.",
)
@output.option("table", "json", "yaml", "name")
def command(registry: str | None, form: str) -> None:
    """List every image that a cluster can pull: components, default images of engines, and distributions.

    Images that a ModelDeployment, a LlamaStackDistribution or an upstream operator names are not in the list.

    \b
    kubefoundry images -o name --registry registry.example.com/kubefoundry
    """  # noqa: D301
    rows = [
        (image, in_registry(image, registry or ""), purpose) for image, purpose in bundle.images().items()
    ]
    if form == "name":
        for _, reference, _ in rows:
            print(reference)
    elif form == "table":
        columns = ("IMAGE", "COPY", "FOR") if registry else ("IMAGE", "FOR")
        output.table(columns, [row if registry else (row[0], row[2]) for row in rows])
    else:
        output.data(
            [{"image": image, "reference": reference, "for": purpose} for image, reference, purpose in rows],
            form,
        )
