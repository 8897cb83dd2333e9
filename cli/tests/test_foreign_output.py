"""Output of containers and models: unchanged in a pipe, and unable to move the cursor of a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving

LOG = b"\x1b[2J\x1b]0;title\x07red\x1b[31m\ttab\r\x9b1m\xc2\x9b2K \xe2\x80\xaeback \xff\n\xc3\xa9\n"
"""Escape sequences of terminals, also of one byte and in UTF-8, text that runs backwards, and invalid UTF-8."""


class Pods(Answers):
    """A server with a running model `m` of provider direct, one pod, and LOG as its log and as the model's answer."""

    def __init__(self) -> None:
        super().__init__()
        model = model_deployment("m", "models", GPU, generation=1, uid="u")
        provider = {"resourceAPIVersion": "apps/v1", "resourceKind": "Deployment", "resourceName": "m"}
        model["status"] = {
            "provider": {"name": "direct", **provider},
            "endpoint": {"service": "m", "port": 8000},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "observedGeneration": 1}],
        }
        pod = {
            "metadata": {"name": "p", "namespace": "models"},
            "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
        }
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m"}, "spec": {}}
        self.objects = {"modeldeployments": [model], "deployments": [deployment], "pods": [pod]}

    def to(self, path: str) -> tuple[int, Any]:
        """Return LOG for a log and for a path behind services/proxy."""
        return (200, LOG) if "/log?" in path or "/proxy/" in path else super().to(path)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["logs", "curl"])
def test_foreign_output_has_no_control_characters_on_a_terminal(command: str, tmp_path: Path) -> None:
    program = [str(Path(sys.executable).with_name("kubefoundry")), command, "m", "--kubeconfig"]
    reader, writer = os.openpty()
    with serving(Pods(), tmp_path) as kubeconfig, os.fdopen(reader, "rb", buffering=0) as terminal:
        with os.fdopen(writer, "wb") as output:
            done = subprocess.run(
                [*program, str(kubeconfig)], stdout=output, stderr=subprocess.PIPE, check=False
            )
            shown = terminal.read(10_000).decode()
        piped = subprocess.run([*program, str(kubeconfig)], capture_output=True, check=False)

    assert (done.returncode, piped.returncode) == (0, 0), done.stderr + piped.stderr
    assert piped.stdout == LOG
    # The terminal itself writes \r\n at the end of a line, and may write spaces for a tab.
    lines = shown.split("\r\n")
    assert [line.replace("\t", "").isprintable() for line in lines] == [True] * 3
    assert ("red" in lines[0], lines[1]) == (True, "é")
