"""The kit on processes: all of ours pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubefoundry_conformance.main import main
from support.kit_planes import kept_planes

pytestmark = [pytest.mark.integration, pytest.mark.apart]

ROOT = Path(__file__).resolve().parents[3]
SELECTOR = ["selector", "--manifest", str(ROOT / "manifests/provider-selector.yaml")]


def failed(report: Path) -> set[str]:
    reported = json.loads(report.read_text(encoding="utf-8"))
    assert sum(result["outcome"] == "passed" for result in reported["results"]) >= 7
    return {result["id"] for result in reported["results"] if result["outcome"] == "failed"}


def test_provider_kuberay_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [
        "--crd",
        str(ROOT / "dev/simulators/crds/kuberay.yaml"),
        "--cases",
        str(ROOT / "providers/kuberay/cases.yaml"),
    ]
    manifest = ["--manifest", str(ROOT / "manifests/providers/kuberay.yaml")]

    code = main(["provider", "--patience", "6", *manifest, *files, "--json", str(tmp_path / "report.json")])

    assert (code, failed(tmp_path / "report.json")) == (0, set()), capsys.readouterr().out


def test_our_selector_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with kept_planes():
        code = main([*SELECTOR, "--patience", "6", "--json", str(tmp_path / "report.json")])

    assert (code, failed(tmp_path / "report.json")) == (0, set()), capsys.readouterr().out
