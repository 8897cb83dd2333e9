"""The SBOM of an image, in CycloneDX 1.6 as JSON.

Written without a library: the document lists the packages that this build has unpacked itself, so nothing has to be
discovered.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from itertools import starmap
from typing import Any, Final
from urllib.parse import quote

from images.debian import SUITE, Package
from images.layout import CREATED, Image
from images.wheels import Wheel

NAMESPACE: Final = uuid.UUID("4f1f5be8-39c1-5d0f-8a4b-0d5a9c4f3f0e")
"""Of the serial numbers, which are derived from the digests of images."""

RELEASE: Final = {"bookworm": "debian-12"}[SUITE]
SHORT: Final = 80
"""Longest text of a licence field that is a name; longer ones are whole licences."""


def document(
    image: Image, image_digest: str, packages: Mapping[Package, Iterable[str]], wheels: Iterable[Wheel]
) -> dict[str, Any]:
    """Return the SBOM of an image with these packages of Debian, each with its licences, and these wheels."""
    parts = [*starmap(_debian, packages.items()), *map(_python, wheels)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, image_digest)}",
        "version": 1,
        "metadata": {
            "timestamp": CREATED,
            "component": {
                "type": "container",
                "bom-ref": image_digest,
                "name": f"kubefoundry/{image.component}",
                "version": image.version,
                "hashes": [_sha256(image_digest.removeprefix("sha256:"))],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "properties": [{"name": "kubefoundry:architecture", "value": image.architecture}],
            },
        },
        "components": sorted(parts, key=lambda part: str(part["bom-ref"])),
    }


def _debian(package: Package, licences: Iterable[str]) -> dict[str, Any]:
    purl = (
        f"pkg:deb/debian/{quote(package.name)}@{quote(package.version)}"
        f"?arch={package.architecture}&distro={RELEASE}"
    )
    return {
        **_part(package.name, package.version, purl),
        "hashes": [_sha256(package.sha256)],
        "licenses": [{"license": {"name": name}} for name in licences],
    }


def _python(wheel: Wheel) -> dict[str, Any]:
    part = _part(
        wheel.name, wheel.version, f"pkg:pypi/{wheel.name.lower().replace('_', '-')}@{wheel.version}"
    )
    if wheel.sha256:
        part["hashes"] = [_sha256(wheel.sha256)]
    if licences := _licences(wheel):
        part["licenses"] = licences
    return part


def _part(name: str, version: str, purl: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _sha256(content: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": content}


def _licences(wheel: Wheel) -> list[Mapping[str, Any]]:
    """Return the licences that a wheel declares: an SPDX expression, a name, or its classifiers."""
    if not wheel.sha256:
        return [{"license": {"id": "Apache-2.0"}}]
    if expression := wheel.metadata["License-Expression"]:
        return [{"expression": str(expression)}]
    name = str(wheel.metadata["License"] or "")
    if name and len(name) <= SHORT and "\n" not in name:
        return [{"license": {"name": name}}]
    classifiers = [str(value) for value in wheel.metadata.get_all("Classifier", ())]
    return [
        {"license": {"name": value.rpartition(" :: ")[2]}}
        for value in classifiers
        if value.startswith("License :: ")
    ]
