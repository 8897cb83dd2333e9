"""Load the installed provider packages, and read the upstream schema that they write for.

A package announces itself by an entry point of group `kubefoundry.providers`: a function without arguments that
returns its `Provider` with default settings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.output import duration, since
from kubefoundry_cli.suggestion import suggestion
from kubefoundry_cli.yaml_file import documents_in
from kubefoundry_sdk._api import foreign_text
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import CRDS, DEPLOYMENTS, PROVIDER_CONFIGS
from kubefoundry_sdk._api.names import PROVIDER_PACKAGES
from kubefoundry_sdk._api.reasons import SETTINGS_DISCOVERED
from kubefoundry_sdk._api.untrusted import mapping, part
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._runtime.options import HEARTBEAT_TIMEOUT

if TYPE_CHECKING:
    from kubefoundry_sdk._cluster.client import Client
    from kubefoundry_sdk._provider.contract import Provider
    from kubefoundry_sdk._provider.upstream_kind import Operator, Schema

RELEASES: Final = "KUBEFOUNDRY_UPSTREAM_CRDS"
"""Environment variable with the folder of upstream CRDs. `--release` reads PROVIDER/RELEASE.yaml in it."""

RELEASE_HELP: Final = f"The CRD from PROVIDER/V.yaml in the folder that {RELEASES} names."
"""For the option `--release`."""


def installed() -> dict[str, Provider]:
    """Return the installed packages by name. Raises Failure that names a package which cannot be loaded."""
    packages: dict[str, Provider] = {}
    for entry in sorted(entry_points(group=PROVIDER_PACKAGES), key=lambda entry: entry.name):
        try:
            packages[entry.name] = entry.load()()
        except Exception as error:
            raise Failure(f"provider package '{entry.name}' failed to load: {error!r}") from error
    return packages


def is_installed(name: str) -> bool:
    """Check whether the package of a provider is installed, without loading it."""
    return name in entry_points(group=PROVIDER_PACKAGES).names


def named(name: str) -> Provider:
    """Return the installed package of that name. Raises Failure that lists the installed ones."""
    packages = installed()
    if name not in packages:
        package_names = ", ".join(packages) or "none"
        raise Failure(
            f"the package of provider '{foreign_text.shown(name)}' is not installed with this command "
            f"(there: {package_names}){suggestion(name, packages)}",
            Exit.USAGE,
        )
    return packages[name]


def silence(config: Mapping[str, Any]) -> float | None:
    """Return the seconds since the provider's last heartbeat, None if it reports in time or has never reported."""
    seconds = since(mapping(config.get("status")).get("lastHeartbeat"))
    return seconds if seconds is not None and seconds > HEARTBEAT_TIMEOUT else None


def configured(provider: Provider, config: Mapping[str, Any] | None) -> tuple[Provider, list[str]]:
    """Return the provider with the flags of the running process, and the remaining differences.

    Args:
        provider: The installed package.
        config: Its InferenceProviderConfig, None if it is unknown.
    """
    status = part(config, "status")
    notes = []
    if silent := silence(config or {}):
        notes.append(
            f"provider {provider.name} has not reported for {duration(silent)}: nothing changes until it does"
        )
    if "version" not in status:
        notes.append("what the provider in the cluster was started with is unknown: these are defaults")
        return provider, notes
    if status["version"] != f"{provider.name}-provider:v{provider.version}":
        notes.append(
            f"the cluster runs {status['version']}, this command has {provider.name} {provider.version}: "
            "what the cluster writes may differ"
        )
    flags = status.get("flags")
    if not flags:
        return provider, notes
    if not isinstance(flags, dict) or provider.from_flags is None:
        notes.append(f"this command cannot render with the flags of {status['version']}: with its defaults")
        return provider, notes
    try:
        return provider.from_flags({str(flag): str(text) for flag, text in flags.items()}), notes
    except ValueError as error:
        notes.append(f"the flags of the provider in the cluster are not those of this command: {error}")
        return provider, notes


def as_running_all(
    packages: Mapping[str, Provider], configs: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Provider], list[str]]:
    """Configure each package like the registered provider of its name. Return the packages and notes."""
    running, notes = dict(packages), list[str]()
    for config in configs:
        if package := packages.get(config["metadata"]["name"]):
            running[package.name], doubts = configured(package, config)
            notes += doubts
    return running, notes


def published_settings(config: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Return the upstream settings that the running provider uses, None if it has not reported them."""
    status = mapping(config.get("status"))
    settings = mapping(status.get("settings"))
    return settings if settings or find(status.get("conditions"), SETTINGS_DISCOVERED) else None


async def as_running(
    client: Client, provider: Provider
) -> tuple[Provider, Mapping[str, str] | None, list[str]]:
    """Return the provider as `configured`, the upstream settings that the running process uses, and notes."""
    try:
        config = await client.get(PROVIDER_CONFIGS, provider.name)
    except ApiError as error:
        if error.code not in (403, 404):
            raise
        running, notes = configured(provider, None)
        return running, None, notes
    running, notes = configured(provider, config)
    return running, published_settings(config), notes


def crds_in(files: Sequence[str]) -> dict[str, Any]:
    """Return the CustomResourceDefinitions of these YAML files by name. Raises Failure."""
    crds: dict[str, Any] = {}
    for file in files:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"cannot read {file}: {' '.join(str(error).split())}", Exit.USAGE) from error
        for document in documents_in(text, file):
            if isinstance(document, dict) and document.get("kind") == CRDS.kind:
                crds[_name_of_crd(document, file)] = document
    return crds


def _name_of_crd(document: Mapping[str, Any], file: str) -> str:
    """Return the name of the CRD. Raises Failure if the document has no name, or no versions with names."""
    meta, spec = document.get("metadata"), document.get("spec")
    name = meta.get("name") if isinstance(meta, dict) else None
    versions = spec.get("versions") if isinstance(spec, dict) else None
    if not isinstance(name, str):
        raise Failure(f"{file}: a {CRDS.kind} has no metadata.name", Exit.USAGE)
    if (
        not isinstance(versions, list)
        or not versions
        or not all(isinstance(version, dict) and isinstance(version.get("name"), str) for version in versions)
    ):
        raise Failure(f"{file}: {CRDS.kind} {name} has no spec.versions with names", Exit.USAGE)
    return name


def crd_file(provider: str, release: str) -> str:
    """Return the path of an upstream release's CRD file. Raises Failure for a missing folder or invalid release."""
    folder = os.environ.get(RELEASES)
    if not folder:
        raise Failure(
            f"--release looks in the folder that {RELEASES} names; set it, or give --crd FILE", Exit.USAGE
        )
    # A release is a file name. It must not lead to another folder.
    if Path(release).name != release or release in ("", ".", ".."):
        raise Failure(f"--release {release}: give a release's name, for example v1.7.0", Exit.USAGE)
    return str(Path(folder) / provider / f"{release}.yaml")


def definitions(files: Sequence[str], release: str | None, provider: Provider) -> dict[str, Any]:
    """Return CRDs by name from `--crd` or `--release`. Raises Failure if both are given."""
    if release is None or provider.upstream.version is not None:
        return crds_in(files)
    if files:
        raise Failure("give --crd or --release, not both", Exit.USAGE)
    return crds_in([crd_file(provider.name, release)])


def probed(provider: Provider, crd: Any) -> Schema:
    """Return the schema of this CRD. Raises Failure if the provider does not support it."""
    from kubefoundry_sdk._provider.upstream_kind import UnsupportedSchema

    schema = provider.probe(crd)
    if isinstance(schema, UnsupportedSchema):
        raise Failure(f"{provider.title} does not support this CRD: it lacks {', '.join(schema.missing)}")
    return schema


async def in_cluster(
    client: Client, provider: Provider, published: Mapping[str, str] | None = None
) -> tuple[Schema, list[str]]:
    """Return the schema that the cluster serves, and notes about settings that could not be read.

    A built-in kind has no CRD: the provider has its schema.

    Args:
        client: The cluster.
        provider: The provider.
        published: The settings that the running provider uses; None reads them from the upstream operator.

    Raises:
        Failure: The CRD is missing, unsupported, or may not be read.
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
    schema, notes = probed(provider, crd), list[str]()
    operator = provider.operator
    if published is not None:
        schema = replace(schema, discovered=published)
    elif operator is not None:
        schema = replace(schema, discovered=await _settings(client, operator, notes))
    return schema, notes


async def _settings(client: Client, operator: Operator, notes: list[str]) -> Mapping[str, str]:
    """Return the settings of the upstream operator. Add a note if its Deployment may not be read."""
    settings: Mapping[str, str] = operator.stated
    if operator.read is None:
        return settings
    for namespace in operator.namespaces:
        try:
            deployment = await client.get(DEPLOYMENTS, operator.deployment, namespace)
        except ApiError as error:
            if error.code == 403:
                notes.append(
                    f"Deployment {namespace}/{operator.deployment} cannot be read: its settings are unknown"
                )
            continue
        settings = {**operator.read(deployment), **operator.stated}
    return settings
