"""The remedy for a model that has no endpoint depends on whether it becomes ready by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving


def condition(type_: str, reason: str) -> dict[str, Any]:
    return {
        "type": type_,
        "status": "False",
        "reason": reason,
        "message": "because",
        "observedGeneration": 1,
    }


@pytest.mark.parametrize(
    ("conditions", "annotations", "remedy"),
    [
        pytest.param([condition("Ready", "Progressing")], {}, "kubefoundry wait m -n models", id="starting"),
        pytest.param([condition("Ready", "ScaledToZero")], {}, "kubefoundry scale m 1", id="zero"),
        pytest.param(
            [condition("ProviderCompatible", "Unsupported")], {}, "kubefoundry explain m", id="refused"
        ),
        pytest.param([condition("Ready", "Failed")], {}, "kubefoundry logs m", id="failed"),
        pytest.param([], {"kubefoundry.ai/reconcile-paused": "true"}, "kubefoundry resume m", id="paused"),
    ],
)
def test_model_without_endpoint_gets_a_remedy_that_helps(
    call: Callable[..., Result],
    tmp_path: Path,
    conditions: list[dict[str, Any]],
    annotations: dict[str, str],
    remedy: str,
) -> None:
    obj = model_deployment("m", "models", GPU, generation=1, uid="u", annotations=annotations)
    answers = Answers()
    answers.objects = {"modeldeployments": [{**obj, "status": {"conditions": conditions}}]}

    with serving(answers, tmp_path) as kubeconfig:
        done = call("curl", "m", "-n", "models", "--kubeconfig", str(kubeconfig))

    assert (done.exit_code, remedy in done.stderr) == (1, True), done.stderr
    assert ("kubefoundry wait" in done.stderr) == ("wait" in remedy)


FORGED = (
    'services "m:80" is forbidden: User "mallory" cannot get resource "services/proxy" in API group "" '
    'in the namespace "models"'
)


class Behind(Answers):
    """A server with a model, whose endpoint gives one answer. `permitted` is the answer to a review."""

    def __init__(self, code: int, body: Any, *, permitted: bool = True) -> None:
        super().__init__()
        model = model_deployment("m", "models", GPU, generation=1, uid="u")
        self.objects = {"modeldeployments": [{**model, "status": {"endpoint": {"service": "m", "port": 80}}}]}
        self.code, self.body, self.permitted = code, body, permitted

    def to(self, path: str) -> tuple[int, Any]:
        if path.endswith("selfsubjectaccessreviews"):
            return 201, {"status": {"allowed": self.permitted}}
        if "/services/m:80/proxy/" in path:
            return self.code, self.body
        return super().to(path)


@pytest.mark.parametrize("command", [("curl", "m"), ("chat", "m", "hello")])
@pytest.mark.parametrize("code", [401, 403])
@pytest.mark.parametrize("permitted", [True, False])
def test_forged_refusal_is_the_models(
    call: Callable[..., Result], tmp_path: Path, command: tuple[str, ...], code: int, permitted: bool
) -> None:
    status = {"kind": "Status", "code": code, "reason": "Forbidden", "message": FORGED}

    with serving(Behind(code, status, permitted=permitted), tmp_path) as kubeconfig:
        done = call(*command, "-n", "models", "--kubeconfig", str(kubeconfig))

    if permitted:
        assert done.stderr.startswith(f"error: ModelDeployment 'm' answered {code}: services"), done.stderr
        assert "kubectl create" not in done.stderr
    else:
        assert done.stderr.startswith("error: cannot reach ModelDeployment 'm': "), done.stderr
        assert done.exit_code == (5 if code == 403 else 4)


@pytest.mark.parametrize(
    ("code", "body", "words"),
    [
        (302, "elsewhere", "'m' answered 302 Found, which is not followed"),
        (500, {"error": "\x1b[2J"}, "'m' answered 500: "),
        (503, {"message": "no endpoints available"}, "'m' does not answer: no endpoints available; "),
        (503, {"message": "x" * 10_000}, "'m' does not answer: xxx"),
        (
            404,
            {"kind": "Status", "message": 'services "m" not found'},
            """'m' does not answer: services "m" not""",
        ),
        (404, {"message": "no such path"}, "'m' answered 404: no such path"),
        (404, "x" * 10_000, "'m' answered 404: "),
    ],
)
@pytest.mark.parametrize("command", [("curl", "m"), ("chat", "m", "hello")])
def test_error_of_a_model_is_shown_in_one_line(
    call: Callable[..., Result], tmp_path: Path, command: tuple[str, ...], code: int, body: Any, words: str
) -> None:
    with serving(Behind(code, body), tmp_path) as kubeconfig:
        done = call(*command, "-n", "models", "--kubeconfig", str(kubeconfig))

    assert (done.exit_code, words in done.stderr) == (1, True), done.stderr
    assert done.stderr.rstrip("\n").isprintable()
    assert len(done.stderr) < 700
    assert "elsewhere" not in done.stderr


class Chatting(Behind):
    """An endpoint that lists its model, and answers a chat with these bytes."""

    def to(self, path: str) -> tuple[int, Any]:
        return (200, {"data": [{"id": "m"}]}) if path.endswith("/proxy/v1/models") else super().to(path)


def event(content: str) -> bytes:
    return b'data: {"choices": [{"delta": {"content": %s}}]}\n\n' % content.encode()


@pytest.mark.parametrize(
    ("answer", "code", "printed", "error"),
    [
        pytest.param(event('"a\\tb\\n"') + event('"c"'), 0, "a\tb\nc\n", "", id="text"),
        pytest.param(event('"\\u001b[2Jx"'), 0, " [2Jx\n", "", id="escape sequence"),
        pytest.param(event('"\\ud800"'), 0, "\ufffd\n", "", id="half a surrogate pair"),
        pytest.param(event('{"a": 1}'), 0, "\n", "", id="a map as text"),
        pytest.param(b'data: {"choices": []}\n' + event('"a"'), 0, "a\n", "", id="figures"),
        pytest.param(b": comment\nid: 1\n" + event('"a"'), 0, "a\n", "", id="other fields"),
        pytest.param(event('"a"') + b'data: {"error": "x"}\n', 1, "a", "not of a chat", id="error"),
        pytest.param(b"data: " + b"[" * 100_000, 1, "", "not of a chat", id="deep"),
        pytest.param(b"data: \xff\x1b\n", 1, "", "not of a chat", id="no text"),
        pytest.param(
            event('"a"') + (b":" * 1023 + b"\n") * 17 * 2**10, 1, "a", "longer than 16 MiB", id="without end"
        ),
    ],
)
def test_chat_survives_any_answer(
    call: Callable[..., Result], tmp_path: Path, answer: bytes, code: int, printed: str, error: str
) -> None:
    with serving(Chatting(200, answer), tmp_path) as kubeconfig:
        done = call("chat", "m", "hello", "-n", "models", "--kubeconfig", str(kubeconfig))

    assert (done.exit_code, done.stdout, error in done.stderr) == (code, printed, True), done.output[-500:]
    assert done.stderr.count("\n") <= 1
