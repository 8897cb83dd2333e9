"""An OCI image layout: image manifests of a component for several architectures, and documents as their referrers.

The only entry of index.json is an image index, because `crane push` and `skopeo copy` take exactly one. It also lists
the manifests of the documents, so that every copy of the index takes them along. Their platform is `unknown`, as
buildx writes it for attestations, so that no runtime selects one.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from images.layers import USER
from images.tree import TIME
from images.wheels import HOME

INDEX: Final = "application/vnd.oci.image.index.v1+json"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
SBOM: Final = "application/vnd.cyclonedx+json"
PROVENANCE: Final = "application/vnd.in-toto+json"
CREATED: Final = datetime.fromtimestamp(TIME, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
PATH: Final = f"/{HOME}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT: Final = (f"PATH={PATH}", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1")
"""As in the Dockerfile. Everything is compiled, and the root file system is read-only in a pod."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer. `archive_digest`: of the archive before its compression. `size`: bytes of its files."""

    title: str
    archive_digest: str
    compressed: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Image:
    """The image of a component for an architecture."""

    component: str
    version: str
    program: str
    architecture: str
    layers: Sequence[Layer]


@dataclass(slots=True)
class Blobs:
    """Contents by digest."""

    contents: dict[str, bytes]

    def add(self, media_type: str, content: bytes | Json, **more: Any) -> dict[str, Any]:
        """Add a content, and return its descriptor. Values of `more` become fields of the descriptor."""
        if not isinstance(content, bytes):
            content = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        name = digest(content)
        self.contents[name] = content
        return {"mediaType": media_type, "digest": name, "size": len(content), **more}


def digest(content: bytes) -> str:
    """Return the digest of a content."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def add_image(blobs: Blobs, image: Image) -> dict[str, Any]:
    """Add an image, and return the descriptor of its manifest."""
    config = {
        "created": CREATED,
        "architecture": image.architecture,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": list(ENVIRONMENT),
            "Entrypoint": [f"/{HOME}/bin/{image.program}"],
            "WorkingDir": "/",
            "Labels": image_annotations(image),
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.archive_digest for layer in image.layers]},
        "history": [{"created": CREATED, "created_by": layer.title} for layer in image.layers],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blobs.add(CONFIG, config),
        "layers": [blobs.add(LAYER, layer.compressed) for layer in image.layers],
        "annotations": image_annotations(image),
    }
    return blobs.add(MANIFEST, manifest, platform={"architecture": image.architecture, "os": "linux"})


def add_document(blobs: Blobs, media_type: str, content: Json, subject: Json) -> dict[str, Any]:
    """Add a document about an image as a referrer, and return the descriptor of its manifest."""
    document = blobs.add(media_type, content)
    nothing = {"architecture": "unknown", "os": "unknown"}
    # The config of an empty image: validators read one for every manifest. A document is no layer of files.
    config = {**nothing, "config": {}, "rootfs": {"type": "layers", "diff_ids": []}}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": media_type,
        "config": blobs.add(CONFIG, config),
        "layers": [document],
        "subject": {key: subject[key] for key in ("mediaType", "digest", "size")},
    }
    return blobs.add(MANIFEST, manifest, artifactType=media_type, platform=nothing)


def add_index(blobs: Blobs, image: Image, manifests: Sequence[Json]) -> dict[str, Any]:
    """Add the index of the architectures of an image, and return its descriptor."""
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": list(manifests),
        "annotations": image_annotations(image),
    }
    return blobs.add(INDEX, index)


def image_annotations(image: Image) -> dict[str, str]:
    """Return the predefined annotations of the OCI image specification."""
    return {
        "org.opencontainers.image.created": CREATED,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.title": f"kubefoundry/{image.component}",
        "org.opencontainers.image.version": image.version,
    }


def write(folder: Path, blobs: Blobs, index: Json, tag: str) -> None:
    """Write a layout, in one step. It replaces an earlier one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    top = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [{**index, "annotations": {"org.opencontainers.image.ref.name": tag}}],
    }
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".layout-") as work:
        new = Path(work) / folder.name
        (new / "blobs" / "sha256").mkdir(parents=True)
        (new / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        (new / "index.json").write_text(json.dumps(top, sort_keys=True, separators=(",", ":")))
        for name, content in blobs.contents.items():
            (new / "blobs" / name.replace(":", "/")).write_bytes(content)
        if folder.exists():
            folder.rename(Path(work) / "earlier")
        new.rename(folder)
