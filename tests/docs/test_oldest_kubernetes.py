"""The oldest supported Kubernetes is the one on which `make test-oldest` runs the integration tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from kubefoundry_cli.server import OLDEST

ROOT: Final = Path(__file__).resolve().parents[2]


def built(module: str) -> str:
    """Return the Kubernetes release that a folder of Go modules builds."""
    [release] = re.findall(r"k8s\.io/kubernetes v([\d.]+)", (ROOT / "dev/devcluster" / module).read_text())
    return str(release)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("README.md", "You need Kubernetes {minor} or newer"),
        ("docs/install.md", "You need Kubernetes {minor} or newer"),
        ("docs/quickstart.md", "Kubernetes {minor} or newer"),
        (
            "docs/release.md",
            "everything on {newest}; the integration tests also on {oldest}, by `make test-oldest`",
        ),
        ("docs/testing.md", "runs on Kubernetes {newest}"),
        ("docs/testing.md", "{oldest}, a release of the oldest supported version"),
        ("charts/kubefoundry/Chart.yaml", 'kubeVersion: ">={minor}.0-0"'),
    ],
)
def test_document_names_the_tested_versions(file: str, text: str) -> None:
    oldest, newest = built("oldest/go.mod"), built("go.mod")
    minor = oldest.rpartition(".")[0]

    stated = " ".join((ROOT / file).read_text().split())

    assert text.format(oldest=oldest, newest=newest, minor=minor) in stated


def test_command_line_refuses_versions_older_than_tested() -> None:
    oldest = tuple(map(int, built("oldest/go.mod").split(".")[:2]))

    assert oldest == OLDEST
