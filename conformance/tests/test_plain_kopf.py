"""The provider without the SDK reports in the words of the SDK."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kubefoundry_sdk._provider.contract import Endpoint, Observation, Replicas
from kubefoundry_sdk._provider.reconcile.report import Report, Stop
from kubefoundry_widgets.provider import provider

PLAIN_KOPF = Path(__file__).parent / "plain_kopf"
PROGRAM = """
import sys
from report import Stop, serving
from widget import Seen
served, newest = map(int, sys.argv[1:])
seen = Seen("Running", "DeploymentReady", "it serves", 1, 1)
print(serving("m", served, newest, Stop("ApplyRejected", "no"), seen)["message"])
"""


@pytest.mark.parametrize(("served", "newest"), [(3, 3), (2, 3), (0, 3)])
def test_plain_kopf_names_the_serving_version_as_the_sdk(served: int, newest: int) -> None:
    seen = Observation("Running", "DeploymentReady", "it serves", Replicas(1, 1, 1), Endpoint("m", 80))
    stop = Stop("ResourceCreated", "ApplyRejected", "no", failed=True)
    expected = Report(newest, seen_generation=served, stop=stop, observation=seen)
    command = [sys.executable, "-c", PROGRAM, str(served), str(newest)]

    done = subprocess.run(command, cwd=PLAIN_KOPF, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == expected.status(provider({"vllm": "example.com/vllm:1"}))["message"]
