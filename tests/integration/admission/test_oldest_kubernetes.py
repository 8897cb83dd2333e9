"""The validation and the CEL compiler of Kubernetes 1.26, the oldest supported version, accept both CRDs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from kubefoundry_local.control_plane import BUILD, ROOT

pytestmark = pytest.mark.integration

CRDS = sorted(path for path in (ROOT / "crds").glob("*.yaml") if path.name != "kustomization.yaml")


@pytest.fixture(scope="module")
def crdcheck() -> str:
    """The checker, built if its sources changed."""
    done = subprocess.run([BUILD, "crdcheck"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def checked(crdcheck: str, *files: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([crdcheck, *files], capture_output=True, text=True, check=False)


def test_both_crds_are_taken(crdcheck: str) -> None:
    done = checked(crdcheck, *CRDS)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "ok inferenceproviderconfigs.kubefoundry.ai",
        "ok modeldeployments.kubefoundry.ai",
    ]


def test_crd_features_newer_than_1_26_are_found(crdcheck: str, tmp_path: Path) -> None:
    crd = yaml.safe_load((ROOT / "crds" / "modeldeployments.yaml").read_text())
    version = crd["spec"]["versions"][0]
    version["selectableFields"] = [{"jsonPath": ".status.provider.name"}]
    rules = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"]
    rules.append({"rule": "self.?image.hasValue()", "message": "image is required"})
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(crd))

    done = checked(crdcheck, tmp_path / "crd.yaml")

    assert done.returncode == 1
    assert "selectableFields" in done.stdout and "self.?image" in done.stdout
