"""Each component as a process: a start that cannot succeed says so in one line; a running one answers and ends."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from kubefoundry_local.child_processes import execute, launch_with
from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import COMPONENTS, Component, Suite
from support.preloaded import client
from support.suites import running_suite
from support.waiting import SECONDS

pytestmark = pytest.mark.integration

STOP = 5.0
"""Seconds within which a component has to end on SIGTERM (contract §6)."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """All components installed, none started; no upstream CRD is there."""
    with running_suite(tmp_path_factory.mktemp("starts")) as made:
        made.install_missing()
        yield made


@pytest.fixture
def executed() -> Iterator[None]:
    """The programs themselves are started, as a kubelet does it."""
    launch_with(execute)
    yield
    launch_with(client.launch)


@pytest.fixture
def taken() -> Iterator[str]:
    """A port that somebody listens on."""
    with socket.socket() as listening:
        listening.bind(("", 0))
        listening.listen()
        yield str(listening.getsockname()[1])


def refusal(component: Component, *flags: str, **environment: str) -> str:
    """The one line that the component says, log lines (JSON) apart, when it ends with exit code 1.

    Its libraries are preloaded: half a second of CPU time less for each of two dozen refusals. What loading them says
    or breaks would be seen where the programs themselves are started: each on a taken port, and each to its end.
    """
    with (
        tempfile.TemporaryFile("w+") as output,
        tempfile.TemporaryFile("w+") as errors,
        Path(os.devnull).open() as nothing,
    ):
        files = [file.fileno() for file in (nothing, output, errors)]
        command = [*component.command, *flags]
        code = client.fork(command, {**component.environment, **environment}, files).wait(SECONDS)
        return one_line(component, code, *(_content(file) for file in (output, errors)))


def refusal_of_the_program(component: Component, **environment: str) -> str:
    """As `refusal`, started as a kubelet does it."""
    done = subprocess.run(
        component.command,
        env={**component.environment, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return one_line(component, done.returncode, done.stdout, done.stderr)


def one_line(component: Component, code: int, output: str, errors: str) -> str:
    said = [line for line in errors.splitlines() if not line.startswith("{")]
    assert (code, output, len(said)) == (1, "", 1), errors
    program = Path(component.command[0]).name
    assert said[0].startswith(f"{program}: ")
    return said[0].removeprefix(f"{program}: ")


def _content(file: IO[str]) -> str:
    """Of what another process has written there."""
    file.seek(0)
    return file.read()


@pytest.mark.parametrize(
    ("name", "port"), [*((name, "HEALTH") for name in COMPONENTS), ("selector", "METRICS")]
)
def test_taken_port_is_named(installed: Suite, taken: str, name: str, port: str) -> None:
    reported = refusal_of_the_program(installed.components[name], **{f"KUBEFOUNDRY_{port}_PORT": taken})

    assert reported.startswith("a port cannot be opened: ") and taken in reported


def test_taken_port_of_the_webhooks_is_named(installed: Suite, taken: str) -> None:
    reported = refusal(installed.components["core"], KUBEFOUNDRY_WEBHOOK_PORT=taken)

    assert reported.startswith(f"port {taken} of the webhooks cannot be opened: ")


@pytest.mark.parametrize("name", COMPONENTS)
def test_unreachable_server_is_waited_for(
    installed: Suite, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    component, port = installed.components[name], str(free_port())
    monkeypatch.setitem(component.environment, "KUBERNETES_SERVICE_PORT", port)
    component.start()
    try:
        reported = _unready(component)
        assert answer(component.health_port, "/healthz") == "ok\n"
    finally:
        code = component.stop()

    assert reported.startswith(f"the API server https://127.0.0.1:{port} does not answer: ")
    assert code == 0
    said = [json.loads(line) for line in component.log.read_text().splitlines()]
    waiting = [line["problem"] for line in said if line["message"] == "cannot start yet, waiting"]
    assert reported.strip() in waiting


def _unready(component: Component) -> str:
    """What `/readyz` says once the process has asked for the server."""
    until = time.monotonic() + SECONDS
    while True:
        assert component.running and time.monotonic() < until
        try:
            answer(component.health_port, "/readyz")
        except urllib.error.HTTPError as error:
            reported: str = error.read().decode()
            if reported != "the API server has not answered yet\n":
                return reported
        except OSError:
            continue  # it does not listen yet


@pytest.mark.parametrize("name", COMPONENTS)
def test_unknown_flag_is_rejected(installed: Suite, name: str) -> None:
    reported = refusal(installed.components[name], "--no-such-flag")

    assert reported.startswith("unrecognized arguments: --no-such-flag; see kubefoundry-")


@pytest.mark.parametrize(
    ("flags", "environment", "words"),
    [
        (["--workers=none"], {}, "argument --workers: 'none' is not a number of at least 1"),
        (["--log-format=xml"], {}, "argument --log-format: invalid choice: 'xml'"),
        (["--log-level=loud"], {}, "argument --log-level: invalid choice: 'loud'"),
        ([], {"KUBEFOUNDRY_QPS": "many"}, "argument --qps: invalid float value: 'many'"),
        ([], {"KUBEFOUNDRY_HEALTH_PORT": "99999"}, "argument --health-port: '99999' is not a port"),
    ],
    ids=["workers", "log format", "log level", "variable", "port"],
)
def test_invalid_value_is_rejected(
    installed: Suite, flags: list[str], environment: dict[str, str], words: str
) -> None:
    reported = refusal(installed.components["selector"], *flags, **environment)

    assert reported.startswith(words) and reported.endswith("; see kubefoundry-selector --help")


@pytest.mark.parametrize("name", COMPONENTS)
def test_refused_token_is_reported(installed: Suite, name: str, tmp_path: Path) -> None:
    component = installed.components[name]
    account = Path(component.environment["KUBEFOUNDRY_SERVICE_ACCOUNT_DIR"])
    (tmp_path / "ca.crt").write_bytes((account / "ca.crt").read_bytes())
    (tmp_path / "token").write_text("of nobody")

    reported = refusal(component, KUBEFOUNDRY_SERVICE_ACCOUNT_DIR=str(tmp_path))

    assert reported == "the API server refused the request: Unauthorized"


def test_no_credentials(installed: Suite, tmp_path: Path) -> None:
    component = installed.components["core"]

    assert refusal(component, KUBEFOUNDRY_SERVICE_ACCOUNT_DIR=str(tmp_path)).startswith(
        "the ServiceAccount's files cannot be read: "
    )
    assert refusal(component, f"--kubeconfig={tmp_path}/none").startswith("no usable kubeconfig: ")


def test_no_resources(fresh: Suite) -> None:
    crds = [f"{plural}.kubefoundry.ai" for plural in ("modeldeployments", "inferenceproviderconfigs")]
    fresh.plane.kubectl("delete", "crd", *crds)
    _until_not_served(fresh)
    fresh.install_missing()

    for name in COMPONENTS:
        reported = refusal(fresh.components[name])

        assert (
            reported
            == "the API server does not serve kubefoundry.ai/v1alpha1: install KubeFoundry's CRDs first"
        )


def _until_not_served(suite: Suite) -> None:
    until = time.monotonic() + SECONDS
    while suite.plane.kubectl("get", "--raw", "/apis/kubefoundry.ai/v1alpha1", check=False).returncode == 0:
        assert time.monotonic() < until


@pytest.mark.usefixtures("executed")
def test_running_components_answer_and_end_at_once(installed: Suite) -> None:
    installed.start()
    took = []

    for name, component in installed.components.items():
        assert answer(component.health_port, "/healthz") == "ok\n"
        assert answer(component.health_port, "/readyz") == "ok\n"
        assert "# TYPE kubefoundry_reconciliation_duration_seconds histogram" in answer(
            component.metrics_port, "/metrics"
        )
        asked = time.monotonic()
        assert component.stop() == 0
        took.append(time.monotonic() - asked)
        last = json.loads(component.log.read_text().splitlines()[-1])
        assert "exception" not in last, name
    # A stalled disk may hold up one of them. A process that takes half a minute is killed, and fails the test.
    assert sorted(took)[-2] < STOP


def answer(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=SECONDS) as response:
        text: str = response.read().decode()
        return text
