"""The kit is interrupted on its own control plane: it says so, and no process or folder remains."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from support.processes import processes_of
from support.waiting import SECONDS

pytestmark = [pytest.mark.integration, pytest.mark.apart, pytest.mark.thorough]

ROOT: Final = Path(__file__).resolve().parents[3]
KIT: Final = [str(Path(sys.executable).with_name("kubefoundry-conformance")), "selector"]

SAYS_ITS_PARENT: Final = """\
import os, signal, sys
open(sys.argv[1], "w").write(str(os.getppid()))
signal.pause()
"""
"""A subject that never gets ready."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_kit_leaves_nothing_when_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    temporary, started, program = tmp_path / "tmp", tmp_path / "started", tmp_path / "subject.py"
    temporary.mkdir()
    os.mkfifo(started)
    program.write_text(SAYS_ITS_PARENT)
    command = f"{sys.executable} {program} {started}"
    kit = subprocess.Popen(
        [*KIT, "--manifest", "manifests/provider-selector.yaml", "--command", command],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    parent = int(started.read_text())  # once the subject has started
    kit.send_signal(number)
    out, err = kit.communicate(timeout=SECONDS)

    assert parent == kit.pid
    assert (kit.returncode, out) == (130, "")
    assert err == "kubefoundry-conformance: interrupted, nothing is reported\n"
    assert list(temporary.iterdir()) == []
    assert processes_of(tmp_path) == []
