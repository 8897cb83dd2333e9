"""Check that command line, core, selector, providers and CRDs are of one release, and name the parts to upgrade."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

from kubefoundry_cli.checks.finding import Finding, listed
from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import of
from kubefoundry_cli.hint import hint
from kubefoundry_cli.install import bundle, storage
from kubefoundry_cli.providers import installed
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import CRDS, DEPLOYMENTS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.untrusted import mappings, part
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._provider.upstream_fields import version_schema

PACKAGE: Final = "kubefoundry-cli"
SHOWN: Final = 3
"""Maximum number of fields in a message."""


async def versions(session: Session) -> list[Finding]:
    """Find the components of another version, and missing permissions. If there are none, return a good finding."""
    crds: list[Object] = []
    findings: list[Finding] = []
    for kind in (MODEL_DEPLOYMENTS, PROVIDER_CONFIGS):
        try:
            crds.append(await session.client.get(CRDS, kind.crd))
        except (ApiError, Unreachable) as error:
            findings.append(Finding("unknown", of(error, f"read CRD {kind.crd}").message))
    findings += of_crds(crds, bundle.crds())
    here = version(PACKAGE)
    findings += await listed(
        session, DEPLOYMENTS, names.SYSTEM_NAMESPACE, lambda deployments: list(of_images(deployments, here))
    )
    packages = {name: package.version for name, package in installed().items()}
    findings += await listed(
        session, PROVIDER_CONFIGS, None, lambda configs: list(of_providers(configs, packages))
    )
    return findings or [Finding("good", f"all versions are those of this command line ({here})")]


def of_images(deployments: Sequence[Object], here: str) -> Iterator[Finding]:
    """Compare core and selector by the tags of their images. `here` is the version of the command line."""
    for deployment in deployments:
        name = str(deployment["metadata"]["name"])
        if name not in (f"kubefoundry-{part}" for part in ("core", "selector")):
            continue
        images = [
            str(container.get("image")) for container in deployment["spec"]["template"]["spec"]["containers"]
        ]
        tag = images[0].partition("@")[0].rpartition("/")[2].partition(":")[2] if images else ""
        yield from _compared(name, tag, here, hint("controller upgrade"))


def of_providers(configs: Sequence[Object], packages: Mapping[str, str]) -> Iterator[Finding]:
    """Compare the versions that providers report with `packages`, the versions of the installed packages."""
    for config in configs:
        name, status = str(config["metadata"]["name"]), config.get("status")
        reported = status.get("version") if isinstance(status, Mapping) else None
        if name in packages and reported:
            way = (
                hint(f"provider upgrade {name}")
                if name in bundle.providers()
                else f"apply the manifest of its release {packages[name]}"
            )
            yield from _compared(f"provider {name}", str(reported).rpartition(":")[2], packages[name], way)


def of_crds(live: Sequence[Object], ours: Sequence[Object]) -> Iterator[Finding]:
    """Compare versions and fields of the live CRDs with those of this command line's CRDs (`ours`)."""
    our_crds = {crd["metadata"]["name"]: crd for crd in ours}
    for crd in live:
        name = crd["metadata"]["name"]
        our_crd = our_crds.get(name, crd)
        if missing := _lacking(our_crd, crd):
            yield Finding(
                "wrong",
                f"CRD {name} is older than this command line: it has no {first_of(missing, SHOWN)}; "
                f"{hint('controller upgrade')}",
            )
        if more := _lacking(crd, our_crd):
            yield Finding(
                "wrong",
                f"CRD {name} is newer than this command line, which does not know {first_of(more, SHOWN)}; "
                "install the command line of the cluster's release",
            )
        if old := storage.outdated(crd):
            yield Finding(
                "wrong",
                f"CRD {name} may have objects that are stored in {', '.join(old)}, not in "
                f"{storage.storage_version(crd)}; {hint('controller migrate')}",
            )


def _lacking(crd: Object, other: Object) -> list[str]:
    """Return the versions that the other CRD lacks, and the fields that it lacks in the versions of both."""
    fields, others = _fields(crd), _fields(other)
    missing = {path for name in fields.keys() & others.keys() for path in fields[name] - others[name]}
    return [*(f"version {name}" for name in sorted(fields.keys() - others.keys())), *sorted(missing)]


def _fields(crd: Object) -> dict[str, frozenset[str]]:
    """Return the paths of all fields by version."""
    return {
        str(crd_version.get("name")): frozenset(_below(version_schema(crd_version), ""))
        for crd_version in mappings(part(crd, "spec").get("versions"))
    }


def _below(schema: Any, path: str) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    for key, value in (schema.get("properties") or {}).items():
        inner_path = f"{path}.{key}" if path else key
        yield inner_path
        yield from _below(value, inner_path)
    for inner in ("items", "additionalProperties"):
        yield from _below(schema.get(inner), f"{path}[]")


def _compared(what: str, reported: str, here: str, way: str) -> Iterator[Finding]:
    theirs, ours = _numbers(reported), _numbers(here)
    if theirs is None or ours is None:
        yield Finding(
            "unknown", f"{what}: its version cannot be read off '{reported}'; this command line has {here}"
        )
    elif theirs < ours:
        yield Finding("wrong", f"{what} {reported} is older than this command line ({here}); {way}")
    elif theirs > ours:
        yield Finding(
            "wrong",
            f"{what} {reported} is newer than this command line ({here}), whose plan and explain may be wrong about "
            "it; install the command line of the cluster's release",
        )


def _numbers(text: str) -> tuple[int, ...] | None:
    match = re.match(r"v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?", text)
    return tuple(int(part or 0) for part in match.groups()) if match else None
