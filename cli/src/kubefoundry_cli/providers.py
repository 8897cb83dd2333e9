"""Provider packages that are installed beside the command line, and the upstream schema that they write for.

A package announces itself by an entry point of group `kubefoundry.providers`: a function without arguments that
returns its `Provider` with default settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_sdk.api.kinds import CRDS, DEPLOYMENTS
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

if TYPE_CHECKING:
    from kubefoundry_sdk.cluster.client import Client
    from kubefoundry_sdk.provider.contract import Provider, Schema

GROUP: Final = "kubefoundry.providers"


def installed() -> dict[str, Provider]:
    """By name. Raises Failure that names a package which cannot be loaded."""
    found: dict[str, Provider] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            found[entry.name] = entry.load()()
        except Exception as error:
            raise Failure(f"provider package '{entry.name}' failed to load: {error!r}") from error
    return found


def named(name: str) -> Provider:
    """Raises Failure that says which ones are there."""
    known = installed()
    if name not in known:
        there = ", ".join(known) or "none"
        raise Failure(
            f"the package of provider '{name}' is not installed with this command (there: {there})",
            Exit.USAGE,
        )
    return known[name]


def crds_in(files: Sequence[str]) -> dict[str, Any]:
    """CustomResourceDefinitions of these YAML files by name. Raises Failure."""
    found: dict[str, Any] = {}
    for file in files:
        try:
            documents = list(yaml.safe_load_all(Path(file).read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise Failure(f"cannot read {file}: {' '.join(str(error).split())}", Exit.USAGE) from error
        for document in documents:
            if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                found[document["metadata"]["name"]] = document
    return found


def probed(provider: Provider, crd: Any) -> Schema:
    """How to write for this CRD. Raises Failure where the provider cannot."""
    from kubefoundry_sdk.provider.contract import UnsupportedSchema

    schema = provider.probe(crd)
    if isinstance(schema, UnsupportedSchema):
        raise Failure(f"{provider.title} does not support this CRD: it lacks {', '.join(schema.missing)}")
    return schema


async def in_cluster(client: Client, provider: Provider) -> tuple[Schema, list[str]]:
    """The schema that the cluster serves, and what could not be read of the settings that belong to it.

    A kind of Kubernetes itself has no CRD. Raises Failure without the CRD, or without the right to read it.
    """
    if provider.upstream.schema is not None:
        return provider.upstream.schema, []
    try:
        crd = await client.get(CRDS, provider.upstream.crd)
    except (ApiError, Unreachable) as error:
        if isinstance(error, ApiError) and error.not_found:
            raise Failure(
                f"{provider.title} is not installed: CRD {provider.upstream.crd} not found; "
                f"see {provider.documentation}"
            ) from error
        if isinstance(error, ApiError) and error.code == 403:
            raise Failure(
                f"cannot read CRD {provider.upstream.crd}: {error.message}; give it as --crd FILE",
                Exit.FORBIDDEN,
            ) from error
        raise
    schema, notes = probed(provider, crd), []
    operator = provider.operator
    if operator is not None:
        settings: Mapping[str, str] = operator.stated
        for namespace in operator.namespaces if operator.read else ():
            try:
                deployment = await client.get(DEPLOYMENTS, operator.deployment, namespace)
            except ApiError as error:
                if error.code == 403:
                    notes.append(
                        f"Deployment {namespace}/{operator.deployment} cannot be read: its settings are unknown"
                    )
                continue
            if operator.read:
                settings = {**operator.read(deployment), **operator.stated}
        schema = replace(schema, discovered=settings)
    return schema, notes
