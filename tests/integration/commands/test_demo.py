"""`make demo`, as CI and as a person run it: its output, its end, and nothing left afterwards."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar
from aiohttp.test_utils import TestServer

from kubefoundry_dashboard.access import Local
from kubefoundry_dashboard.application import make
from kubefoundry_demo import namespaces
from kubefoundry_demo.main import stay
from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_local.suite import COMPONENTS
from kubefoundry_sdk._cluster import credentials
from support.processes import processes_of

pytestmark = [pytest.mark.integration, pytest.mark.apart]

PROGRAM = Path(sys.executable).parent / "kubefoundry-demo"
BOUND = 300.0
"""Seconds that end a hang."""

ANSWER = r" ?[a-z]*( [a-z]+)*\n?"
"""What the model of random weights says: words, perhaps none."""

WITHOUT_PODS = ["setpriv", "--bounding-set=-sys_admin", "--"] if os.geteuid() == 0 else []
"""Runs a program where no pods can run."""


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """The test's own folder for temporary files, so that whatever is left shows there."""
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    return {**kept, "TMPDIR": str(tmp_path), **more}


def started(tmp_path: Path, *before: str) -> subprocess.Popen[str]:
    """As by hand: a shell has its background jobs, pytest perhaps among them, ignore Ctrl-C."""
    return subprocess.Popen(
        [*before, PROGRAM],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def starting(demo: subprocess.Popen[str], folder: Path) -> list[str]:
    """Command lines of its processes, once it has started the last of its components.

    Most of them are under way then, none or few are ready. To wait until all are ready would take half as much CPU
    time again.
    """
    assert demo.stdout
    for line in demo.stdout:
        if "upstream CRDs: " in line:
            break
    last = [*COMPONENTS][-1]
    until = time.monotonic() + BOUND
    while not any(f"kubefoundry-provider-{last}" in one for one in processes_of(folder)):
        assert demo.poll() is None and time.monotonic() < until, processes_of(folder)
        time.sleep(0.05)
    return processes_of(folder)


def test_in_ci_it_shows_everything_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [*WITHOUT_PODS, PROGRAM],
        env=environment(tmp_path, CI="true"),
        capture_output=True,
        text=True,
        timeout=BOUND,
    )

    assert (done.returncode, done.stderr) == (0, "")
    for name, provider in (
        ("gemma-cpu", "kaito"),
        ("llama-70b-pd", "dynamo"),
        ("llama-8b", "dynamo"),
        ("qwen-ray", "kuberay"),
    ):
        shown = [line.split() for line in done.stdout.splitlines() if f" {name} " in line]
        assert [provider, "Running"] in [words[3:5] for words in shown]
    for said in (
        "SIMULATED upstream operators",
        "Left out: the model that answers, because running pods needs ",
        "no GPU requested → kaito (only CPU provider)",
        "kind: DynamoGraphDeployment",
        "vLLM engine requires GPU (set resources.gpu.count > 0)",
        "Disaggregated mode requires scaling.prefill and scaling.decode",
        "Nothing of theirs is left in namespace models, of any kind.",
    ):
        assert said in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


async def on_the_page(kubeconfig: str) -> dict[str, str]:
    """The model's answer as the page streams it, and the page of its logs."""
    access = Local(credentials.from_kubeconfig(kubeconfig), "models", 1)
    async with TestServer(make(access)) as server, ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
        base = f"http://127.0.0.1:{server.port}"
        model = f"{base}/models/models/tiny-random"
        await (await client.get(f"{base}/?code={access.code}")).release()
        async with client.get(f"{model}/logs") as answer:
            logs = await answer.text()
        [csrf] = re.findall(r'name="csrf" content="([^"]+)"', logs)
        question = {"question": "hello", "csrf": csrf}
        async with client.post(f"{model}/chat?stream=1", data=question, headers={"Origin": base}) as answer:
            return {"chat": await answer.text(), "logs": logs.partition('id="log"')[2]}


def test_demo_model_answers_during_a_change(tmp_path: Path) -> None:
    if reason := namespaces.missing():
        pytest.skip(reason)
    demo = started(tmp_path)
    assert demo.stdout
    shown = ""
    for line in demo.stdout:
        shown += line
        if line.startswith("Logs of the processes"):
            break
    [kubeconfig] = re.findall(r"export KUBECONFIG=(\S+)", shown)

    command = [str(PROGRAM.with_name("kubefoundry")), "chat", "tiny-random", "hello", "--max-tokens", "5"]
    chat = subprocess.run(
        [*command, "-n", "models", "--kubeconfig", kubeconfig], capture_output=True, text=True, timeout=BOUND
    )
    logs = subprocess.run(
        [command[0], "logs", "tiny-random", "-n", "models", "--kubeconfig", kubeconfig],
        capture_output=True,
        text=True,
        timeout=BOUND,
    )
    page = asyncio.run(on_the_page(kubeconfig))
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=BOUND)

    # A model of random weights may end its answer at any word.
    assert re.fullmatch(ANSWER, page["chat"]), page["chat"]
    assert (logs.returncode, logs.stderr) == (0, "")
    assert "stop processing" in logs.stdout
    assert "stop processing" in page["logs"]
    assert (chat.returncode, chat.stderr) == (0, "")
    assert re.fullmatch(ANSWER, chat.stdout), chat.stdout
    # Five tokens make up to five words.
    assert len(chat.stdout.split()) <= 5
    assert "no other provider takes it → direct" in shown
    assert "n_ctx was 512, is 1024" in shown
    [sent] = re.findall(r"  (\d+) requests sent, 0 failed", shown)
    assert int(sent) > 10
    assert demo.returncode == 0
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


def test_ctrl_c_ends_all_of_it(tmp_path: Path) -> None:
    demo = started(tmp_path, *WITHOUT_PODS)
    assert len(starting(demo, tmp_path)) > len(COMPONENTS)

    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=BOUND)

    assert demo.returncode == 130
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


class AnsweredAtOnce(io.StringIO):
    """A terminal whose user presses Ctrl-C as the first words appear."""

    def write(self, text: str, /) -> int:
        written = super().write(text)
        if text.strip():
            signal.raise_signal(signal.SIGINT)
        return written


def test_ctrl_c_is_taken_from_the_moment_it_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    shown = AnsweredAtOnce()
    monkeypatch.setattr(sys, "stdout", shown)
    try:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, text=True) as runs:
            plane = ControlPlane(tmp_path / "kubeconfig", "", None, tmp_path / "binary", runs)

            stay(plane, tmp_path)

            assert runs.poll() is None
    except KeyboardInterrupt:
        pytest.fail("interrupted where it should have ended")
    finally:
        signal.signal(signal.SIGINT, before)
    assert "until Ctrl-C" in shown.getvalue()


def test_kill_leaves_nothing_that_runs(tmp_path: Path) -> None:
    demo = started(tmp_path)
    assert len(starting(demo, tmp_path)) > len(COMPONENTS)

    demo.kill()
    demo.communicate(timeout=BOUND)

    until = time.monotonic() + BOUND
    while left := processes_of(tmp_path):
        assert time.monotonic() < until, left
        time.sleep(0.1)


def test_demo_names_missing_program_in_one_line(tmp_path: Path) -> None:
    # Binaries of one's own are announced, but not there.
    given = environment(tmp_path, CI="true", KUBEBUILDER_ASSETS=str(tmp_path / "none"))

    done = subprocess.run([PROGRAM], env=given, capture_output=True, text=True, timeout=BOUND)

    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("kubefoundry-demo: the control plane ended: devcluster:")
    assert "Traceback" not in done.stderr
    assert processes_of(tmp_path) == []
