"""Ctrl-C ends the demo without a traceback, even while it imports its modules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("module", ["yaml", "rich", "kubefoundry_local", "kubefoundry_nodes"])
def test_signal_ends_demo_when_a_module_is_loading(module: str, number: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text(f"import os, signal\nos.kill(os.getpid(), signal.{number})\n")

    result = subprocess.run(
        [sys.executable, "-c", "from kubefoundry_demo.__main__ import main\nmain()"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        # Background jobs of a shell ignore Ctrl-C, and pytest may be one of them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )

    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")
