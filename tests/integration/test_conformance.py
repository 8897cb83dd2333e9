"""The kit on processes: ours pass, and one that decides too much is seen."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kubefoundry_conformance.main import main

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
SELECTOR = ["selector", "--manifest", str(ROOT / "manifests/selector.yaml")]


def failed(report: Path) -> set[str]:
    told = json.loads(report.read_text(encoding="utf-8"))
    assert sum(result["outcome"] == "passed" for result in told["results"]) >= 7
    return {result["id"] for result in told["results"] if result["outcome"] == "failed"}


def test_provider_kuberay_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [
        "--crd",
        str(ROOT / "simulators/crds/kuberay.yaml"),
        "--cases",
        str(ROOT / "providers/kuberay/cases.yaml"),
    ]
    manifest = ["--manifest", str(ROOT / "manifests/providers/kuberay.yaml")]

    code = main(["provider", *manifest, *files, "--json", str(tmp_path / "report.json")])

    assert (code, failed(tmp_path / "report.json")) == (0, set()), capsys.readouterr().out


def test_our_selector_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*SELECTOR, "--json", str(tmp_path / "report.json")])

    assert (code, failed(tmp_path / "report.json")) == (0, set()), capsys.readouterr().out


def test_a_selector_that_always_gives_one_answer_is_seen(tmp_path: Path) -> None:
    program = ROOT / "tests/support/stubborn_selector.py"

    code = main(
        [*SELECTOR, "--command", f"{sys.executable} {program}", "--json", str(tmp_path / "report.json")]
    )

    assert (code, failed(tmp_path / "report.json")) == (1, {"SEL-4", "SEL-5", "SEL-6", "SEL-7", "SEL-8"})
