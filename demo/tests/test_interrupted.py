"""Ctrl-C ends the demo without a traceback, even while its modules are loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("module", ["yaml", "rich", "kubefoundry_local", "kubefoundry_nodes"])
def test_while_a_module_is_loaded(module: str, number: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text(f"import os, signal\nos.kill(os.getpid(), signal.{number})\n")

    ended = subprocess.run(
        [sys.executable, "-c", "from kubefoundry_demo.__main__ import main\nmain()"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        # A shell has its background jobs, pytest perhaps among them, ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
