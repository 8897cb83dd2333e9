"""A process whose libraries are preloaded is in the state of one that was started, and ends as it does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_local.child_processes import Launch, execute
from support.preloaded import client

ENVIRONMENT = {"PATH": os.environ["PATH"], "WORD": "ä b\n"}

STATE = """
import asyncio, json, os, resource, signal, sys, threading
if __name__ == "__main__":
    streams = (sys.stdin, sys.stdout, sys.stderr)
    print(json.dumps({
        "argv": sys.argv, "path": sys.path[0], "environ": dict(os.environ), "folder": os.getcwd(),
        "leader": os.getsid(0) == os.getpid() == os.getpgid(0),
        "signals": {name: str(signal.getsignal(name)) for name in signal.valid_signals()},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "files": sorted(os.listdir("/proc/self/fd"), key=int)[:3], "more": len(os.listdir("/proc/self/fd")),
        "streams": [(one.encoding, one.errors, one.line_buffering, one.fileno()) for one in streams],
        "limits": [resource.getrlimit(name) for name in range(16)], "threads": threading.active_count(),
        "collects": __import__("gc").isenabled(), "umask": os.umask(0), "flags": list(sys.flags),
        "doc": __doc__, "name": __name__, "file": globals().get("__file__"),
    }))
"""


def script(folder: Path, text: str) -> list[str]:
    """A program in the environment's folder of programs; there, only such a one is preloaded."""
    path = folder / "program"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return [str(path)]


@pytest.fixture(autouse=True)
def _in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "runs", lambda command: True)


def output(launch: Launch, command: Sequence[str], folder: Path) -> tuple[int, str]:
    log = folder / f"{launch.__module__}.log"
    code = launch(command, ENVIRONMENT, log).wait(60)
    return code, log.read_text()


@pytest.mark.slow
def test_forked_process_has_the_state_of_a_program(tmp_path: Path) -> None:
    command = [*script(tmp_path, STATE), "--word", "ü"]

    def state(launch: Launch) -> dict[str, Any]:
        code, said = output(launch, command, tmp_path)
        assert code == 0, said
        return dict(json.loads(said))

    assert state(client.launch) == state(execute)


INTERRUPTED = """\
import os, signal
# which a background job, pytest perhaps, ignores
signal.signal(signal.SIGINT, signal.default_int_handler)
os.kill(os.getpid(), signal.SIGINT)
signal.pause()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import sys; sys.exit(3)", 3),
        ("import sys; print('a'); sys.exit('why')", 1),
        ("1 / 0", 1),
        ("import atexit; atexit.register(print, 'last'); print('first')", 0),
        ("import os; os._exit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        (INTERRUPTED, -signal.SIGINT),
    ],
)
def test_forked_process_ends_as_a_program(text: str, code: int, tmp_path: Path) -> None:
    preloaded = output(client.launch, script(tmp_path, text), tmp_path)
    started = output(execute, script(tmp_path, text), tmp_path)

    assert preloaded[0] == started[0] == code
    # the frames of runpy stand above the program's own
    assert preloaded[1].splitlines()[-1:] == started[1].splitlines()[-1:]


@pytest.mark.slow
def test_preloaded_process_runs_other_code_on_the_path(tmp_path: Path) -> None:
    """As the commit before, whose models this one upgrades."""
    other = tmp_path / "other"
    (other / "kubefoundry_sdk").mkdir(parents=True)
    (other / "kubefoundry_sdk/__init__.py").write_text("RELEASE = 'other'")
    command = script(tmp_path, "import kubefoundry_sdk; print(kubefoundry_sdk.RELEASE)")

    process = client.launch(command, {**ENVIRONMENT, "PYTHONPATH": str(other)}, tmp_path / "log")

    assert (process.wait(60), (tmp_path / "log").read_text()) == (0, "other\n")


@pytest.mark.slow
def test_wait_is_bounded_and_late_signal_is_ignored(tmp_path: Path) -> None:
    process = client.launch(script(tmp_path, "import signal; signal.pause()"), ENVIRONMENT, tmp_path / "log")

    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    assert process.poll() is None
    process.terminate()

    assert process.wait(60) == process.poll() == -signal.SIGTERM
    process.kill()
    assert process.poll() == -signal.SIGTERM


def test_server_outlives_the_thread_that_started_it() -> None:
    """The first process may be started by a thread of an event loop, which ends with the test."""
    program = (
        "import os, sys, threading, time\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from support.preloaded import client\n"
        "starting = threading.Thread(target=client._server, args=[sys.executable])\n"
        "starting.start()\n"
        "starting.join()\n"
        "while os.path.exists(f'/proc/self/task/{starting.native_id}'):\n"
        "    time.sleep(0.01)\n"
        "nothing = os.open(os.devnull, os.O_RDWR)\n"
        "asked = [sys.executable, '-m', 'kubefoundry_simulators', '--help']\n"
        "sys.exit(client.fork(asked, {'PATH': os.environ['PATH']}, [nothing] * 3).wait(60))\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
