"""`kubefoundry completion bash`, in a bash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMPLETE = """
eval "$(kubefoundry completion bash)"
COMP_WORDS=(kubefoundry "$@") COMP_CWORD=$#
_kubefoundry_completion kubefoundry
echo "${COMPREPLY[@]}"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        pytest.param(["st"], "status start", id="command"),
        pytest.param(["provider", "inst"], "install", id="command of a group"),
        pytest.param(["status", "--outp"], "--output", id="option"),
        pytest.param(["status", "-o", "js"], "json", id="value"),
        pytest.param(["nothing-begins-so"], "", id="nothing"),
    ],
)
def test_bash_completes_commands_options_and_values(words: list[str], completed: str) -> None:
    folder = Path(sys.executable).parent

    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", *words],
        capture_output=True,
        text=True,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
    )

    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, completed, "")
