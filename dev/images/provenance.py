"""The provenance of an image: a SLSA v1 predicate in an in-toto statement, as JSON.

It has no times and no name of a machine, so that two builds of a commit have equal digests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from images.layout import Image

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://slsa.dev/provenance/v1"
BUILDER: Final = "https://kubefoundry.ai/make-release/v1"
"""The commands of `make release`, on the machine of the person who ran them (docs/release.md)."""


def statement(image: Image, image_digest: str, commit: str, sbom: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statement.

    Args:
        image: The image.
        image_digest: The digest of its manifest.
        commit: The commit of the sources.
        sbom: The SBOM of the image. Its packages with hashes are the materials.
    """
    materials = [
        {"uri": part["purl"], "digest": {"sha256": part["hashes"][0]["content"]}}
        for part in sbom["components"]
        if "hashes" in part
    ]
    return {
        "_type": STATEMENT,
        "subject": [
            {
                "name": f"kubefoundry/{image.component}",
                "digest": {"sha256": image_digest.removeprefix("sha256:")},
            }
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILDER,
                "externalParameters": {
                    "component": image.component,
                    "architecture": image.architecture,
                    "version": image.version,
                },
                "resolvedDependencies": [{"name": "source", "digest": {"gitCommit": commit}}, *materials],
            },
            "runDetails": {"builder": {"id": BUILDER}},
        },
    }
