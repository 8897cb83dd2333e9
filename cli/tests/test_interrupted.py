"""Ctrl-C at a prompt ends the command at once, and a bundle is written whatever the cluster does meanwhile."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

from kubefoundry_cli import support_bundle
from kubefoundry_cli.cluster import Session
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from support.waiting import SECONDS

ASKING = """
from kubefoundry_cli.cluster import run
from kubefoundry_cli.edit import confirmed

async def work():
    confirmed("Model 'm' goes", False)

run(work())
"""


def test_interrupt_ends_a_prompt() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", ASKING], stdin=theirs, stderr=subprocess.PIPE) as asking:
        try:
            assert asking.stderr
            shown = b""
            while b"Continue?" not in shown:
                shown += os.read(asking.stderr.fileno(), 100)
            # A signal in the microseconds between the prompt and the read that waits is seen after the read.
            until_asleep(asking.pid)
            asking.send_signal(signal.SIGINT)
            code = asking.wait(SECONDS)
        finally:
            asking.kill()
    os.close(ours)
    os.close(theirs)

    assert code == 130


def until_asleep(pid: int) -> None:
    """Until the process waits in the kernel."""
    ends = time.monotonic() + SECONDS
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        assert time.monotonic() < ends
        os.sched_yield()


IMPORTING = """
import os, signal, sys
from kubefoundry_cli import main

def interrupted(name):
    os.kill(os.getpid(), signal.SIGINT)

# Whoever runs the tests in the background has had it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
main.import_module = interrupted
sys.argv = ["kubefoundry", "status"]
main.main()
"""


def test_while_a_command_is_being_imported() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True, timeout=SECONDS)

    assert (done.returncode, done.stderr.strip()) == (130, "")


async def test_bundle_reports_an_unreachable_cluster(tmp_path: Path) -> None:
    nowhere = Credentials("http://127.0.0.1:1", None, lambda: None)
    finding = {"state": "good", "text": "was there"}
    async with Client(nowhere, user_agent="test") as client:
        content = await support_bundle.collected(Session(client, "n"), None, [finding])
    support_bundle.write(str(tmp_path / "b.tgz"), content)

    assert json.loads(content["doctor.json"]) == [finding]
    assert len(json.loads(content["missing.json"])) >= 10
    assert modes(tmp_path) == {"b.tgz": 0o600}


def modes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}
