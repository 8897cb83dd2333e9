"""A subject that ignores SIGTERM is killed. PRO-2 reports it, and the other results stay."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kubefoundry_conformance.cluster.rig import Rig
from kubefoundry_local import suite
from kubefoundry_local.suite import Component


def test_subject_is_killed_when_it_ignores_sigterm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "STOP", 0.1)
    ignoring = ["env", "--ignore-signal=TERM", "sleep", "60"]
    subject = Component("subject", ignoring, {"PATH": os.environ["PATH"]}, tmp_path / "log", 0, 0)
    subject.start()
    assert subject.process is not None
    process = subject.process
    while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
        assert process.poll() is None

    code = asyncio.run(Rig.stop(cast(Rig, SimpleNamespace(subject=subject))))

    assert (code, process.poll(), subject.running) == (None, -9, False)
