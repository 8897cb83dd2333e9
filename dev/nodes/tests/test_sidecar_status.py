"""The status of pods with sidecars (kubelet 1.36: getPhase, GeneratePodInitializedCondition and its siblings)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from kubefoundry_nodes.kubelet import status
from kubefoundry_nodes.kubelet.status import Container
from kubefoundry_sdk._api.kinds import Object

WAITING: Final[Object] = {"waiting": {"reason": "PodInitializing"}}
RUNNING: Final[Object] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
ENDED: Final[Object] = {"terminated": {"exitCode": 0}}
FAILED: Final[Object] = {"terminated": {"exitCode": 3}}
BACK_OFF: Final[Object] = {"waiting": {"reason": "CrashLoopBackOff"}}


def side(state: Object, *, started: bool = False, last: Object | None = None) -> Container:
    return Container("side", "i", state, sidecar=True, started=started, ready=started, last=last or {})


def main(state: Object) -> Container:
    return Container("main", "i", state, started=state is RUNNING, ready=state is RUNNING)


@pytest.mark.parametrize(
    ("init", "containers", "policy", "expected"),
    [
        pytest.param([side(WAITING)], [main(WAITING)], "Always", "Pending", id="not created"),
        pytest.param([side(RUNNING)], [main(WAITING)], "Always", "Pending", id="not started"),
        pytest.param([side(RUNNING, started=True)], [main(WAITING)], "Always", "Pending", id="main waits"),
        pytest.param([side(RUNNING, started=True)], [main(RUNNING)], "Always", "Running", id="runs"),
        pytest.param([side(BACK_OFF, last=FAILED)], [main(WAITING)], "Always", "Pending", id="never started"),
        pytest.param([side(BACK_OFF, last=FAILED)], [main(RUNNING)], "Always", "Running", id="crash loop"),
        pytest.param([side(RUNNING)], [main(RUNNING)], "Always", "Running", id="starts again"),
        pytest.param([side(RUNNING, started=True)], [main(ENDED)], "Never", "Running", id="is to end"),
        pytest.param([side(FAILED)], [main(ENDED)], "Never", "Succeeded", id="failed at the end"),
    ],
)
def test_phase_counts_sidecars(
    init: Sequence[Container], containers: Sequence[Container], policy: str, expected: str
) -> None:
    assert status.phase(policy, init, containers, ending=False) == expected


@pytest.mark.parametrize(
    ("init", "containers", "initialized", "unready"),
    [
        pytest.param([side(RUNNING)], [main(WAITING)], False, ["side", "main"], id="not started"),
        pytest.param([side(RUNNING, started=True)], [main(WAITING)], True, ["main"], id="started"),
        pytest.param([side(BACK_OFF, last=FAILED)], [main(RUNNING)], True, ["side"], id="crash loop"),
        pytest.param([side(RUNNING, started=True)], [main(RUNNING)], True, [], id="ready"),
    ],
)
def test_conditions_count_sidecars(
    init: Sequence[Container], containers: Sequence[Container], initialized: bool, unready: list[str]
) -> None:
    conditions = {item["type"]: item for item in status.conditions("Running", init, containers, sandbox=True)}

    assert conditions["Initialized"]["status"] == str(initialized)
    message = f"containers with unready status: [{' '.join(unready)}]" if unready else None
    assert conditions["Ready"].get("message") == message
