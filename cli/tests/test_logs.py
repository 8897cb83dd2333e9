"""`kubefoundry logs` of several containers, some of which have no log, or one that does not arrive."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from kubefoundry_cli import pods
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving


class Containers(Answers):
    """A server with a model of one pod. Each log is bytes, a refusal (403), or None for one that does not arrive."""

    def __init__(self, **logs: bytes | int | None) -> None:
        super().__init__()
        self.logs, self.ended = logs, threading.Event()
        model = model_deployment("m", "models", GPU, generation=1, uid="u", resourceVersion="1")
        provider = {"resourceAPIVersion": "apps/v1", "resourceKind": "Deployment", "resourceName": "m"}
        model["status"] = {"provider": {"name": "direct", **provider}}
        pod = {
            "metadata": {"name": "pod", "namespace": "models"},
            "spec": {"nodeName": "n", "containers": [{"name": name} for name in logs]},
        }
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m"}, "spec": {}}
        self.objects = {"modeldeployments": [model], "deployments": [deployment], "pods": [pod]}

    def to(self, path: str) -> tuple[int, Any]:
        """Return the log, or an object."""
        if "/log?" not in path:
            return super().to(path)
        log = self.logs[path.partition("container=")[2].partition("&")[0]]
        if log is None:
            self.ended.wait()
            return 200, b""
        if isinstance(log, int):
            return log, {"kind": "Status", "code": log, "reason": "Forbidden", "message": "no"}
        return 200, log


@pytest.fixture
def logs(
    call: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Prints the logs of a model: answers, options -> result."""
    monkeypatch.setattr(pods, "LOG_SECONDS", 0.5)

    def run(answers: Containers, *options: str) -> Result:
        with serving(answers, tmp_path) as kubeconfig:
            try:
                return call("logs", "m", *options, "--kubeconfig", str(kubeconfig))
            finally:
                answers.ended.set()

    return run


@pytest.mark.parametrize("options", [(), ("-f",)])
def test_refused_log_leaves_no_warning(logs: Callable[..., Result], options: tuple[str, ...]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # The result has a traceback, whose frames keep the coroutines.
        code = logs(Containers(a=403, b=b"hello\n", c=b"hello\n"), *options).exit_code
        gc.collect()

    assert code == 5
    assert [str(warning.message) for warning in caught if "awaited" in str(warning.message)] == []


def test_log_that_does_not_arrive_is_named(logs: Callable[..., Result]) -> None:
    done = logs(Containers(a=b"first\n", b=None, c=b"third\n"))

    assert (done.exit_code, done.stdout) == (0, "pod/a first\npod/c third\n")
    assert "pod/b: the rest of the log did not arrive within" in done.stderr


def test_no_log_that_arrives_is_a_failure(logs: Callable[..., Result]) -> None:
    done = logs(Containers(a=None))

    assert (done.exit_code, done.stdout) == (1, "")
    assert "pod/a: the rest of the log did not arrive within" in done.stderr
