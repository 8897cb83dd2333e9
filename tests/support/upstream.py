"""Read the real upstream CRDs beside the checkout (optional), and the project's own small stand-ins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.upstream_kind import Schema
from support.parsed import parsed

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("KUBEFOUNDRY_SHARED") or REPOSITORY.parent / "shared")
"""The optional data folder `../shared`. KUBEFOUNDRY_SHARED names another folder."""

STANDINS = REPOSITORY / "dev" / "simulators" / "crds"
"""The project's own CRDs, one file a provider."""

PROVIDERS = ("kaito", "dynamo", "kuberay")

requires_shared = pytest.mark.skipif(
    not (SHARED / "upstream-crds").is_dir(),
    reason="the real upstream CRDs are not here: no ../shared beside the checkout, no KUBEFOUNDRY_SHARED",
)
"""Skip a test that needs the real upstream CRDs or recordings."""


@dataclass(frozen=True, slots=True)
class UpstreamCRD:
    """A CustomResourceDefinition of an upstream release. `name` is the release."""

    name: str
    document: dict[str, Any]

    @property
    def storage_version(self) -> str:
        """Return the version that is stored."""
        return next(
            str(version["name"]) for version in self.document["spec"]["versions"] if version["storage"]
        )

    @property
    def served_versions(self) -> tuple[str, ...]:
        """Return the versions that are served."""
        return tuple(
            version["name"] for version in self.document["spec"]["versions"] if version.get("served")
        )

    def __str__(self) -> str:
        return self.name


@cache
def crds(provider: str) -> tuple[UpstreamCRD, ...]:
    """Return the releases of the provider's CRD in ../shared, by file name. Without ../shared there are none."""
    return tuple(
        UpstreamCRD(path.stem, parsed(path))
        for path in sorted((SHARED / "upstream-crds" / provider).glob("*.yaml"))
    )


def oldest_first(provider: str) -> list[UpstreamCRD]:
    """Return `crds` in the order of their releases: v0.9.4, v0.10.0, v1.2-main-…, main-…"""

    def age(crd: UpstreamCRD) -> tuple[bool, list[int]]:
        numbers = re.match(r"v([\d.]+)", crd.name)
        return numbers is None, [int(part) for part in numbers[1].split(".")] if numbers else []

    return sorted(crds(provider), key=age)


@cache
def standin(provider: str) -> UpstreamCRD:
    """Return the project's own stand-in, which has only the fields that the provider uses."""
    return UpstreamCRD("standin", parsed(STANDINS / f"{provider}.yaml"))


def schema(crd: UpstreamCRD, version: str) -> dict[str, Any]:
    """Return the `openAPIV3Schema` of a version. Raise KeyError if the CRD does not have the version."""
    for candidate in crd.document["spec"]["versions"]:
        if candidate["name"] == version:
            return dict(candidate["schema"]["openAPIV3Schema"])
    raise KeyError(f"{crd.name} has no version {version}")


def probed_schemas(provider: Provider) -> Iterator[Schema]:
    """Yield the schema of each stored release of the upstream CRD that the provider supports."""
    if provider.upstream.schema:
        yield provider.upstream.schema
        return
    for crd in (standin(provider.name), *crds(provider.name)):
        probed = provider.probe(crd.document)
        if isinstance(probed, Schema):
            yield probed
