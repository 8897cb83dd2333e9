"""The real upstream CRDs beside the checkout (optional), and the project's own small stand-ins."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.parsed import parsed

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("KUBEFOUNDRY_SHARED") or REPOSITORY.parent / "shared")
"""The optional data folder `../shared`; KUBEFOUNDRY_SHARED names another place."""

STANDINS = REPOSITORY / "dev" / "simulators" / "crds"
"""The project's own CRDs, one file a provider."""

PROVIDERS = ("kaito", "dynamo", "kuberay")

requires_shared = pytest.mark.skipif(
    not (SHARED / "upstream-crds").is_dir(),
    reason="the real upstream CRDs are not here: no ../shared beside the checkout, no KUBEFOUNDRY_SHARED",
)
"""Skips a test that needs the real upstream CRDs or recordings."""


@dataclass(frozen=True, slots=True)
class UpstreamCRD:
    """A CustomResourceDefinition as an upstream release publishes it; `name` is the release's."""

    name: str
    document: dict[str, Any]

    @property
    def storage_version(self) -> str:
        return next(
            str(version["name"]) for version in self.document["spec"]["versions"] if version["storage"]
        )

    @property
    def served_versions(self) -> tuple[str, ...]:
        return tuple(
            version["name"] for version in self.document["spec"]["versions"] if version.get("served")
        )

    def __str__(self) -> str:
        return self.name


@cache
def crds(provider: str) -> tuple[UpstreamCRD, ...]:
    """Every release of the provider's CRD that ../shared holds, by file name; empty where it is missing."""
    return tuple(
        UpstreamCRD(path.stem, parsed(path))
        for path in sorted((SHARED / "upstream-crds" / provider).glob("*.yaml"))
    )


def oldest_first(provider: str) -> list[UpstreamCRD]:
    """`crds` in the order of their releases: v0.9.4, v0.10.0, v1.2-main-…, main-…"""

    def age(crd: UpstreamCRD) -> tuple[bool, list[int]]:
        numbers = re.match(r"v([\d.]+)", crd.name)
        return numbers is None, [int(part) for part in numbers[1].split(".")] if numbers else []

    return sorted(crds(provider), key=age)


@cache
def standin(provider: str) -> UpstreamCRD:
    """The project's own stand-in: the fields that the provider uses, no more."""
    return UpstreamCRD("standin", parsed(STANDINS / f"{provider}.yaml"))


def schema(crd: UpstreamCRD, version: str) -> dict[str, Any]:
    """The `openAPIV3Schema` of that version. Raises KeyError where the CRD has none of that name."""
    for candidate in crd.document["spec"]["versions"]:
        if candidate["name"] == version:
            found: dict[str, Any] = candidate["schema"]["openAPIV3Schema"]
            return found
    raise KeyError(f"{crd.name} has no version {version}")
