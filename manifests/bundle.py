"""Writes the files of `kubectl apply -f` that have several parts: core.yaml and install.yaml."""

from __future__ import annotations

from pathlib import Path

import yaml

HERE = Path(__file__).parent
CRDS = HERE.parent / "crds"

CORE = (
    # First: `kubectl delete -f` asks core for permission while core still runs.
    CRDS / "modeldeployments.yaml",
    CRDS / "inferenceproviderconfigs.yaml",
    HERE / "namespace.yaml",
    HERE / "users.yaml",
    HERE / "parts" / "core.yaml",
)
CORE_HEADER = """\
# Core with all that it needs: CRDs, namespace, roles of users. Each provider has a file of its own in providers/.
# `kubectl delete -f` of this file deletes no model: the CRDs stay while ModelDeployments exist.
# Generated from crds/, namespace.yaml, users.yaml and parts/core.yaml: make manifests
"""
INSTALL_HEADER = """\
# All of KubeFoundry: CRDs, namespace, roles of users, core, selector and the providers.
# `kubectl delete -f` of this file deletes no model: the CRDs stay while ModelDeployments exist.
# Generated from the files that kustomization.yaml names: make manifests
"""


def core() -> str:
    """Return the text of core.yaml."""
    return CORE_HEADER + _joined(CORE)


def install() -> str:
    """Return the text of install.yaml."""
    _, *others = parts()
    return INSTALL_HEADER + _joined((*CORE, *others))


def parts() -> list[Path]:
    """Return the files that kustomization.yaml names, core.yaml first."""
    named = yaml.safe_load((HERE / "kustomization.yaml").read_text())["resources"]
    return [HERE / name for name in named]


def _joined(paths: tuple[Path, ...]) -> str:
    return "".join("---\n" + path.read_text() for path in paths)


if __name__ == "__main__":
    (HERE / "core.yaml").write_text(core())
    (HERE / "install.yaml").write_text(install())
