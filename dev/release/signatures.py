"""Signatures of a release by cosign, with a key and without a service: no transparency log, no time stamps."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path
from typing import Final

from images import registry, tree
from images.debian import Failure
from images.registry import Registry

from release import checksums

FOLDER: Final = "signatures"
NO_SERVICES: Final = '{"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json"}'
NO_AUTHORITIES: Final = '{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}'
"""Without this file, cosign downloads the authorities of the public services, and does not need them."""


def check(key: Path) -> None:
    """Check that the key exists, and build cosign and crane. Raises Failure, CalledProcessError."""
    if not key.is_file():
        raise Failure(
            f"SIGN_KEY={key} is not a file; write a key with $(dev/devcluster/build cosign) generate-key-pair"
        )
    for name in ("cosign", "crane"):
        registry.program(name)


def write(release: Path, key: Path) -> None:
    """Sign the checksums and the images of a release. Raises Failure.

    The password of the key is in COSIGN_PASSWORD, or cosign asks for it.
    """
    (release / FOLDER).mkdir()
    with tempfile.TemporaryDirectory() as work:
        services, authorities = Path(work, "services.json"), Path(work, "authorities.json")
        services.write_text(NO_SERVICES)
        authorities.write_text(NO_AUTHORITIES)
        options = (f"--key={key}", f"--signing-config={services}", f"--trusted-root={authorities}", "--yes")
        bundle = release / FOLDER / f"{checksums.NAME}.sigstore.json"
        registry.run("cosign", "sign-blob", *options, f"--bundle={bundle}", str(release / checksums.NAME))
        bundle.chmod(0o644)
        # cosign signs images in a registry, and stores the signatures there.
        with registry.registry(Path(work, "registry")) as server:
            for archive in sorted((release / "images").glob("*.tar")):
                content = signature(server, archive, options, Path(work, archive.stem))
                (release / FOLDER / archive.name).write_bytes(content)


def signature(server: Registry, archive: Path, options: tuple[str, ...], work: Path) -> bytes:
    """Return the archive of an OCI layout with the signature of an image. Raises Failure."""
    layout, signed = work / "image", work / "signature"
    with tarfile.open(archive) as tar:
        tar.extractall(layout)
    reference = server.push(layout, f"{archive.stem}:unsigned")
    registry.run("cosign", "sign", *options, "--allow-http-registry", reference)
    name, _, digest = reference.partition("@")
    registry.run("crane", "pull", "--format=oci", f"{name}:{digest.replace(':', '-')}", str(signed))
    return tree.archive(tree.read(signed))
