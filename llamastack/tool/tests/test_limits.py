"""Tests `install` without disk space or memory: a code of its own, nothing installed, and a rerun with space
succeeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from llamastack_providers import staging
from llamastack_providers.errors import Code, Failure
from support.provider_images import image, wheel
from support.provider_pod import Ended, Pod

pytestmark = pytest.mark.integration

BIG = {"acme_echo/data.bin": os.urandom(1 << 20)}
MOUNTED = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")
"""A mount of the test's own, for whoever runs it."""
SMALL = 'mount -t tmpfs -o size=600k none "$0"; "$@"; code=$?; find "$0" -type f >&2; exit $code'


def limited(pod: Pod, source: Path, *within: str) -> Ended:
    return pod.call(*pod.install_arguments(source, "my-echo"), within=within)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = image(tmp_path / "echo")
    wheel(folder / "packages", "acme-data", files=BIG)
    return folder


@pytest.mark.accept("HP-8")
def test_install_reports_full_disk_and_rerun_succeeds(pod: Pod, source: Path) -> None:
    if subprocess.run([*MOUNTED, "true"], check=False).returncode:
        pytest.skip("no user namespaces here: a small volume cannot be mounted")

    ended = limited(pod, source, *MOUNTED, SMALL, str(pod.shared))

    assert ended.code == 1, ended.log
    for word in ("Code: NoSpace\n", "Provider: my-echo\n", "--provider-size-limit"):
        assert word in ended.message, ended.log
    assert str(pod.shared / "python-packages") not in ended.log
    assert pod.install(source, "my-echo").code == 0


@pytest.mark.accept("HP-8")
def test_install_reports_missing_memory_and_rerun_succeeds(pod: Pod, source: Path) -> None:
    """The limit hits pip: with less the tool itself would not start, with more pip would finish."""
    ended = limited(pod, source, "sh", "-c", 'ulimit -v 40000; exec "$@"', "sh")

    assert ended.code == 1, ended.log
    for word in ("Code: NoMemory\n", "Provider: my-echo\n", "--init-resources"):
        assert word in ended.message, ended.log
    assert pod.installed() == set()
    assert pod.install(source, "my-echo").code == 0


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("OSError: [Errno 12] Cannot allocate memory: '/pip'", Code.NoMemory),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 12] Cannot allocate memory",
            Code.NoMemory,
        ),
        ("ERROR: Unknown scheme key used in acme-echo: [Errno 12]", Code.PipFailed),
        ("ERROR: Invalid script entry point: foo = OSError: [Errno 12] x", Code.PipFailed),
    ],
)
def test_failed_system_call_is_reported_as_missing_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, code: Code
) -> None:
    """Python raises MemoryError, or a system call fails, depending on the moment."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "{output}"\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    stage = staging.fresh(tmp_path / "staging")

    with pytest.raises(Failure) as raised:
        staging.unpack([wheel(tmp_path, "acme-echo")], stage)

    assert raised.value.code is code
