"""Answers of a proxy or another server in place of the API server: each command reports what was seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from kubefoundry_cli.failure import Exit
from support.deployments import GPU
from support.fake_server import Answers, serving
from support.upstream import STANDINS

Call = Callable[..., Result]

COMMANDS = (
    "status",
    "status m",
    "wait m --timeout 0",
    "logs m",
    "curl m",
    "chat m hello",
    "scale m 2",
    "pause m",
    "explain m",
    "plan m",
    "plan -f FILE",
    "eject m --yes",
    "deploy o/m --yes",
    "import rayservice/m --yes",
    "compat kuberay --crd CRD",
    "provider list",
    "provider install direct --yes",
    "controller status",
    "controller install --yes",
    "controller uninstall --yes",
    "version",
)
PAGE = b"<html>please log in</html>"
ANSWERS: dict[str, tuple[int, str, bytes]] = {
    "404 page": (404, "text/html", b"<html>nginx: not found</html>"),
    "404 in JSON": (404, "application/json", b'{"error": "no such route"}'),
    "login page": (200, "text/html", PAGE),
    "text": (200, "text/plain", b"OK"),
    "redirect": (302, "text/plain", b""),
    **{f"{code} page": (code, "text/html", PAGE) for code in (403, 502, 504)},
    **{f"{code} text": (code, "text/plain", b"upstream refused\nthis") for code in (403, 409, 502, 504)},
    **{f"{code} in JSON": (code, "application/json", b'{"error": "no"}') for code in (403, 502, 503)},
}
UNTRUE = (
    *("does not answer", "not installed", "does not exist", "not found", "<html>", "administrator"),
    *("permission", "has changed"),
)


class Foreign(Answers):
    """A server that is no API server: the same answer for each path."""

    def __init__(self, code: int, content_type: str, body: bytes) -> None:
        super().__init__()
        self.answer, self.content_type = (code, body), content_type

    def to(self, path: str) -> tuple[int, Any]:
        """Return the answer."""
        return self.answer


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("command", COMMANDS)
def test_foreign_answer_is_reported_as_seen(
    call: Call, file: Callable[..., str], tmp_path: Path, command: str, answer: str
) -> None:
    words = command.replace("FILE", file(GPU)).replace("CRD", str(STANDINS / "kuberay.yaml")).split()
    with serving(Foreign(*ANSWERS[answer]), tmp_path) as kubeconfig:
        done = call(*words, "--kubeconfig", str(kubeconfig))

    assert done.exit_code == Exit.NO_CLUSTER, done.stderr
    first, *others = done.stderr.splitlines()
    assert "something other than the API server has answered" in first
    assert others == []
    assert [text for text in UNTRUE if text in done.stderr] == []


@pytest.mark.parametrize("command", COMMANDS[:4])
def test_proxy_that_refuses_is_named_without_password(call: Call, tmp_path: Path, command: str) -> None:
    with serving(Foreign(404, "text/plain", b""), tmp_path) as kubeconfig:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster = document["clusters"][0]["cluster"]
        address = cluster["server"].removeprefix("http://")
        cluster |= {"server": "https://192.0.2.1", "proxy-url": f"http://me:secret@{address}"}
        kubeconfig.write_text(yaml.safe_dump(document))
        done = call(*command.split(), "--kubeconfig", str(kubeconfig))

    assert done.exit_code == Exit.NO_CLUSTER, done.stderr
    assert f"the proxy http://{address} does not connect to the API server: 404" in done.stderr
    assert "does not answer" not in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize(("code", "is_unsure"), [(403, False), (502, True), (504, True)])
def test_write_that_a_proxy_answers_may_have_been_done(
    call: Call, tmp_path: Path, code: int, is_unsure: bool
) -> None:
    with serving(Foreign(code, "text/plain", b"no"), tmp_path) as kubeconfig:
        created = call("deploy", "o/m", "--yes", "--kubeconfig", str(kubeconfig))
        listed = call("status", "--kubeconfig", str(kubeconfig))

    assert ("it may have been done nevertheless" in created.stderr) == is_unsure, created.stderr
    assert "nevertheless" not in listed.stderr
