"""How a command fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubefoundry_cli.failure import Failure, not_served, of
from kubefoundry_cli.output import say
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from support.deployments import GPU


def status(message: str, **details: str) -> dict[str, object]:
    """Return a Status with the reason NotFound."""
    return {"kind": "Status", "code": 404, "reason": "NotFound", "message": message, "details": details}


HOSTILE = "provider '\x1b[2J\x07\u202eevil' is\nnot here"


def test_error_shows_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    Failure(HOSTILE).show()
    say(HOSTILE)

    shown = capsys.readouterr().err
    assert [char for char in shown if not char.isprintable() and char != "\n"] == []
    assert shown.count("\n") == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [
        pytest.param("explain -f - --offline <&-", 2, "- has 0 ModelDeployments", id="standard input closed"),
        pytest.param("completion bash >/dev/full", 1, "No space left on device", id="a full disk"),
        pytest.param("completion bash >&-", 0, "", id="standard output closed"),
        pytest.param("completion bash | head -c 1 >/dev/null", 0, "", id="a reader that leaves"),
    ],
)
def test_odd_streams_are_at_most_one_line(redirected: str, code: int, said: str) -> None:
    program = Path(sys.executable).with_name("kubefoundry")

    done = subprocess.run(["/bin/sh", "-c", f"{program} {redirected}"], capture_output=True, text=True)

    assert (done.returncode, said in done.stderr) == (code, True), done
    assert done.stderr.count("\n") <= 1


@pytest.mark.slow
def test_encoding_without_arrows_gets_escapes(file: Callable[..., str]) -> None:
    program = Path(sys.executable).with_name("kubefoundry")

    done = subprocess.run(
        [program, "explain", "-f", file(GPU), "--offline"],
        capture_output=True,
        text=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )

    assert (done.returncode, "\\u2192" in done.stdout) == (0, True), done


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("404 page not found\n", True, id="custom group"),
        pytest.param(status("the server could not find the requested resource"), True, id="built-in group"),
        pytest.param(status("nothing here"), True, id="other words"),
        pytest.param(status('pods "page not found" not found', name="page not found"), False, id="object"),
        pytest.param("<html>nginx: page not found</html>", False, id="another server"),
        pytest.param(status('admission webhook "w" denied the request: no'), False, id="denial"),
    ],
)
def test_missing_kind_is_recognized_by_the_typed_answer(body: object, expected: bool) -> None:
    assert not_served(ApiError.from_status(404, body)) is expected


@pytest.mark.parametrize(
    ("request_line", "cause", "unsure"),
    [
        ("POST /x", TimeoutError(), True),
        ("PATCH /x", TimeoutError(), True),
        ("GET /x", TimeoutError(), False),
        ("POST /x", ConnectionRefusedError(), False),
    ],
)
def test_unanswered_write_may_have_been_done(request_line: str, cause: Exception, unsure: bool) -> None:
    error = Unreachable(f"{request_line}: {type(cause).__name__}")
    error.__cause__ = cause

    assert ("may have been done nevertheless" in of(error, "create it").message) == unsure
