"""The files of a release, by their path in its folder."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from images import tree, wheels
from images.build import build
from images.components import ROOT
from images.layout import PROVENANCE, SBOM

from release.single_file import single_file
from release.source import Source

PACKAGES: Final = sorted(
    str(path.parent.relative_to(ROOT))
    for pattern in ("*/pyproject.toml", "providers/*/pyproject.toml", "llamastack/*/pyproject.toml")
    for path in ROOT.glob(pattern)
)
"""Folders of the published packages: all but the examples and the tools for development."""

MANIFESTS: Final = ("install.yaml", "images.txt")
DOCUMENTS: Final = {SBOM: ("sboms", "cdx.json"), PROVENANCE: ("provenance", "intoto.json")}
"""Folder and ending of the documents about images, by media type."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which images a release has. `debian_lock`: the lock of the Debian packages."""

    components: Sequence[str]
    architectures: Sequence[str]
    debian_lock: Path


def write(folder: Path, source: Source, selection: Selection) -> None:
    """Write all files of a release but the checksums. Raises CalledProcessError, OSError, Failure."""
    (folder / "charts").mkdir(parents=True)
    for name in MANIFESTS:
        (folder / name).write_bytes((ROOT / "manifests" / name).read_bytes())
    for chart in sorted((ROOT / "charts").iterdir()):
        (folder / "charts" / f"{chart.name}-{source.version}.tgz").write_bytes(chart_archive(chart))
    _write_packages(folder, source, selection)
    _write_images(folder, source, selection)


def chart_archive(chart: Path) -> bytes:
    """Return the archive of a chart, as `helm package` writes it, but without times."""
    files = {f"{chart.name}/{path}": file for path, file in tree.read(chart).items()}
    return gzip.compress(tree.archive(files), mtime=0)


def _write_packages(folder: Path, source: Source, selection: Selection) -> None:
    """Write our wheels and the command line as a single file."""
    ours = wheels.build(PACKAGES, {"SOURCE_DATE_EPOCH": str(source.time)})
    (folder / "wheels").mkdir()
    for wheel in ours.values():
        (folder / "wheels" / wheel.file_name).write_bytes(wheel.content)
    program = folder / f"kubefoundry-{source.version}.pyz"
    program.write_bytes(single_file(ours, selection.architectures))
    program.chmod(0o755)


def _write_images(folder: Path, source: Source, selection: Selection) -> None:
    """Write an archive of each image, its documents, and the list of digests."""
    for name in ("images", *(name for name, _ in DOCUMENTS.values())):
        (folder / name).mkdir()
    digests = []
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".layouts-") as work:
        for built in build(
            Path(work), selection.components, selection.architectures, selection.debian_lock, source.commit
        ):
            layout = Path(work, built.component)
            archive = folder / "images" / f"{built.component}-{source.version}.tar"
            archive.write_bytes(tree.archive(tree.read(layout)))
            for name, content in documents(layout):
                (folder / name).write_bytes(content)
            digests.append(f"kubefoundry/{built.component}:{source.version}@{built.digest}\n")
            print(built, flush=True)
    (folder / "digests.txt").write_text("".join(sorted(digests)))


def documents(layout: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each document about the images of a layout."""
    [entry] = json.loads((layout / "index.json").read_text())["manifests"]
    manifests = json.loads(_blob(layout, entry))["manifests"]
    architectures = {descriptor["digest"]: descriptor["platform"]["architecture"] for descriptor in manifests}
    for descriptor in manifests:
        if kind := DOCUMENTS.get(descriptor.get("artifactType")):
            folder, ending = kind
            manifest = json.loads(_blob(layout, descriptor))
            architecture = architectures[manifest["subject"]["digest"]]
            yield f"{folder}/{layout.name}-{architecture}.{ending}", _blob(layout, manifest["layers"][0])


def _blob(layout: Path, descriptor: Any) -> bytes:
    return (layout / "blobs" / str(descriptor["digest"]).replace(":", "/")).read_bytes()
