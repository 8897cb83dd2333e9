"""The examples, and the kit's test subject in plain kopf, pass the conformance kit."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubefoundry_conformance.main import main
from kubefoundry_sdk import manifest
from kubefoundry_widgets.provider import with_defaults
from support.kit_planes import kept_planes
from support.widgets import EXAMPLES, ROOT

pytestmark = [pytest.mark.integration, pytest.mark.apart, pytest.mark.thorough]

KOPF = f"{Path(sys.executable).parent / 'kopf'} run --standalone --all-namespaces"
WIDGETS = [
    *("--crd", str(EXAMPLES / "provider" / "widgets.crd.yaml")),
    *("--cases", str(EXAMPLES / "provider" / "cases.yaml")),
]
OURS = ROOT / "manifests" / "provider-selector.yaml"
PLAIN_KOPF = ROOT / "conformance" / "tests" / "plain_kopf"


@pytest.fixture(autouse=True)
def _kept_planes() -> Iterator[None]:
    """Reuse control planes. The test in tests/integration/conformance/test_conformance.py starts a new one."""
    with kept_planes():
        yield


def check(arguments: list[str], report: Path) -> tuple[int, list[str], int]:
    """Run the kit, and return its exit code, the violations and the number of passed checks."""
    log = report.with_suffix(".log")
    code = main([*arguments, "--patience", "6", "--json", str(report), "--log", str(log)])
    assert log.stat().st_size, "what the process logged is kept"
    results = json.loads(report.read_text(encoding="utf-8"))["results"]
    failed = [
        f"{result['id']}: {result['seen']}, expected {result['expected']}"
        for result in results
        if result["outcome"] == "failed"
    ]
    return code, failed, sum(result["outcome"] == "passed" for result in results)


def test_provider_in_kopf_operator_passes(tmp_path: Path) -> None:
    program = EXAMPLES / "kopf-provider" / "operator_with_provider.py"
    documents = manifest(with_defaults(), "example.com/widget-operator:0.1.0", kopf=str(program))
    (tmp_path / "manifest.yaml").write_text("\n---\n".join(map(json.dumps, documents)))

    code, failed, passed = check(
        ["provider", "--manifest", str(tmp_path / "manifest.yaml"), *WIDGETS], tmp_path / "report.json"
    )

    assert (code, failed) == (0, [])
    assert passed >= 22


def test_provider_without_sdk_passes(tmp_path: Path) -> None:
    subject = [
        "--manifest",
        str(PLAIN_KOPF / "manifest.yaml"),
        "--command",
        f"{KOPF} {PLAIN_KOPF / 'provider.py'}",
    ]

    code, failed, passed = check(["provider", *subject, *WIDGETS], tmp_path / "report.json")

    assert (code, failed) == (0, [])
    assert passed >= 22


@pytest.mark.parametrize(
    ("program", "providers", "more"),
    [("by_cost.py", "dynamo,kuberay", "prices.yaml"), ("by_policy.py", "dynamo,kaito", None)],
)
def test_selector_with_own_choice_passes(
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


def test_selector_in_kopf_passes(tmp_path: Path) -> None:
    folder = EXAMPLES / "kopf-selector"
    command = f"{KOPF} {folder / 'selector.py'}"

    code, failed, passed = check(
        ["selector", "--manifest", str(folder / "manifest.yaml"), "--command", command],
        tmp_path / "report.json",
    )

    assert (code, failed) == (0, [])
    assert passed >= 12


@pytest.mark.parametrize(
    ("folder", "crd"), [("kserve", "llminferenceservices.crd.yaml"), ("lws", "leaderworkersets.crd.yaml")]
)
def test_provider_of_a_vendor_passes(folder: str, crd: str, tmp_path: Path) -> None:
    root = EXAMPLES / folder
    files = [*("--crd", str(root / "tests" / crd)), *("--cases", str(root / "cases.yaml"))]

    code, failed, passed = check(
        ["provider", "--manifest", str(root / "manifest.yaml"), *files], tmp_path / "report.json"
    )

    assert (code, failed) == (0, [])
    assert passed >= 22
