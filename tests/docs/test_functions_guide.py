"""The provider of docs/functions.md is a whole one: it passes the kit as it is printed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from kubefoundry_conformance.main import main
from kubefoundry_sdk._functions import messages
from kubefoundry_sdk._functions.client import DELAYS, Deadlines
from kubefoundry_sdk._functions.description import Description
from kubefoundry_sdk._functions.program import LOG_LINES, LONGEST_LINE

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "functions.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("jq") is None, reason="there is no jq here")
def test_provider_of_functions_guide_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, cases = tmp_path / "provider.sh", tmp_path / "cases.yaml"
    program.write_text(GUIDE.split("```sh\n")[1].split("```")[0])
    program.chmod(0o755)
    example = ROOT / "examples" / "provider"
    cases.write_text((example / "cases.yaml").read_text())
    files = ["--crd", str(example / "widgets.crd.yaml"), "--cases", str(cases)]

    code = main(["provider", "--functions-command", str(program), *files, "--examples", "30"])

    assert code == 0, capsys.readouterr().out


def test_functions_guide_names_every_function_and_key() -> None:
    for function, arguments in messages.ARGUMENTS.items():
        row = re.search(rf"^\| `{function}` \|.*$", GUIDE, re.MULTILINE)
        assert row, function
        assert [name for name in arguments if f"`{name.removesuffix('_')}`" not in row[0]] == []
    keys = [field.alias for field in Description.model_fields.values()]
    assert [key for key in keys if f"`{key}`" not in GUIDE.split("## Describe the provider")[1]] == []


def test_functions_guide_has_the_limits_of_the_code() -> None:
    limits = GUIDE.split("## Rules and limits")[1]
    for words in (
        f"within {Deadlines().call:g} s (`--call-timeout`)",
        f"within {Deadlines().start:g} s (`--start-timeout`)",
        f"at most {LONGEST_LINE // 2**20} MiB",
        f"waits for {DELAYS.after(1):g} s, then {DELAYS.after(2):g} s, up to {DELAYS.last:g} s",
        f"at most {LOG_LINES} a second",
    ):
        assert words in limits
