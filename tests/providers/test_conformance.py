"""Our providers' functions pass the conformance kit, as `make conformance` calls it with more examples."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from kubefoundry_conformance.main import main

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = "40"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in ROOT.glob("providers/*/cases.yaml")))
def test_it_passes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    crd = ROOT / "simulators/crds" / f"{name}.yaml"
    files = ["--cases", str(ROOT / "providers" / name / "cases.yaml")]
    if crd.is_file():  # a kind of Kubernetes needs none
        files += ["--crd", str(crd)]

    code = main(["provider", "--functions", name, "--examples", EXAMPLES, *files])

    assert code == 0, capsys.readouterr().out
