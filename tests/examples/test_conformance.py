"""The examples pass the conformance kit, as their pages say."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubefoundry_conformance.main import main
from support.kit_planes import kept_planes
from support.widgets import EXAMPLES, ROOT

pytestmark = [pytest.mark.integration, pytest.mark.apart]

KOPF = f"{Path(sys.executable).parent / 'kopf'} run --standalone --all-namespaces"
WIDGETS = [
    *("--crd", str(EXAMPLES / "provider" / "widgets.crd.yaml")),
    *("--cases", str(EXAMPLES / "provider" / "cases.yaml")),
]
OURS = ROOT / "manifests" / "provider-selector.yaml"


@pytest.fixture(autouse=True)
def _kept_planes() -> Iterator[None]:
    """tests/integration/test_conformance.py has the kit start one of its own."""
    with kept_planes():
        yield


def check(arguments: list[str], report: Path) -> tuple[int, list[str], int]:
    """Exit code, what failed and why, and how many checks passed."""
    log = report.with_suffix(".log")
    code = main([*arguments, "--json", str(report), "--log", str(log)])
    assert log.stat().st_size, "what the process logged is kept"
    results = json.loads(report.read_text(encoding="utf-8"))["results"]
    failed = [
        f"{one['id']}: {one['seen']}, expected {one['expected']}"
        for one in results
        if one["outcome"] == "failed"
    ]
    return code, failed, sum(one["outcome"] == "passed" for one in results)


@pytest.mark.parametrize(
    ("folder", "program"), [("kopf-provider", "operator_with_provider.py"), ("kopf-plain", "provider.py")]
)
def test_a_provider_in_kopf(folder: str, program: str, tmp_path: Path) -> None:
    command = f"{KOPF} {EXAMPLES / folder / program}"
    manifest = ["--manifest", str(EXAMPLES / folder / "manifest.yaml"), "--command", command]

    code, failed, passed = check(["provider", *manifest, *WIDGETS], tmp_path / "report.json")

    assert (code, failed) == (0, [])
    assert passed >= 22


@pytest.mark.parametrize(
    ("program", "providers", "more"),
    [("by_cost.py", "dynamo,kuberay", "prices.yaml"), ("by_policy.py", "dynamo,kaito", None)],
)
def test_a_selector_with_a_choice_of_its_own(
    program: str, providers: str, more: str | None, tmp_path: Path
) -> None:
    folder = EXAMPLES / "selectors"
    files = [OURS, folder / more] if more else [OURS]
    (tmp_path / "manifest.yaml").write_text("\n---\n".join(file.read_text() for file in files))
    subject = ["--manifest", str(tmp_path / "manifest.yaml"), "--providers", providers]

    code, failed, passed = check(
        ["selector", *subject, "--command", f"{sys.executable} {folder / program}"], tmp_path / "report.json"
    )

    assert (code, failed) == (0, [])
    assert passed >= 12


def test_a_selector_in_kopf(tmp_path: Path) -> None:
    folder = EXAMPLES / "kopf-selector"
    command = f"{KOPF} {folder / 'selector.py'}"

    code, failed, passed = check(
        ["selector", "--manifest", str(folder / "manifest.yaml"), "--command", command],
        tmp_path / "report.json",
    )

    assert (code, failed) == (0, [])
    assert passed >= 12


def test_a_provider_behind_a_gateway(tmp_path: Path) -> None:
    folder = EXAMPLES / "kserve"
    files = [
        *("--crd", str(folder / "tests" / "llminferenceservices.crd.yaml")),
        *("--cases", str(folder / "cases.yaml")),
    ]

    code, failed, passed = check(
        ["provider", "--manifest", str(folder / "manifest.yaml"), *files], tmp_path / "report.json"
    )

    assert (code, failed) == (0, [])
    assert passed >= 22
