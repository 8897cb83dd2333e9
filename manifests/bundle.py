"""Writes install.yaml: all that kustomization.yaml names, in its order, as one file for `kubectl apply -f`."""

from __future__ import annotations

from pathlib import Path

import yaml

HERE = Path(__file__).parent
HEADER = """\
# All of KubeFoundry except the CRDs (kubectl apply -k crds): namespace, user roles, core, selector and the providers.
# Generated from the files that kustomization.yaml names: make manifests
"""


def parts(folder: Path) -> list[Path]:
    """The files that a kustomization names, those of folders among them included."""
    named = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    files: list[Path] = []
    for name in named:
        path = (folder / name).resolve()
        files.extend(parts(path) if path.is_dir() else [path])
    return files


def bundle() -> str:
    """The text of install.yaml."""
    return HEADER + "".join("---\n" + path.read_text() for path in parts(HERE))


if __name__ == "__main__":
    (HERE / "install.yaml").write_text(bundle())
