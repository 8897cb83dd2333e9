"""`kubefoundry wait`: which words it ends with, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubefoundry_cli import cluster
from kubefoundry_cli.commands.wait import until
from kubefoundry_cli.failure import Exit, Failure
from support.fake_server import Answers, serving

SERVING = {"type": "Ready", "status": "True", "reason": "DeploymentReady", "observedGeneration": 1}
SILENT = {
    "type": "ProviderHealthy",
    "status": "False",
    "reason": "HeartbeatLost",
    "message": "kuberay is silent",
    "observedGeneration": 1,
}


def model(generation: int = 1, *conditions: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    meta = {"name": "m", "namespace": "models", "generation": generation, "resourceVersion": "1", **metadata}
    return {
        "metadata": meta,
        "spec": {},
        "status": {"phase": "Running", "message": "1 of 1 replicas serve", "conditions": [*conditions]},
    }


async def waited(folder: Path, models: list[dict[str, Any]], state: str, seconds: float) -> None:
    answers = Answers()
    answers.objects = {"modeldeployments": models}
    with serving(answers, folder) as kubeconfig:
        async with cluster.session(cluster.Target(str(kubeconfig), None, "models")) as session:
            await until(session, "m", state, seconds, keep_waiting=False)


async def test_wait_without_time_succeeds_when_model_is_ready(tmp_path: Path) -> None:
    await waited(tmp_path, [model(1, SERVING)], "ready", 0.0)


@pytest.mark.parametrize(
    ("obj", "state", "said"),
    [
        pytest.param(
            model(2, SERVING, SILENT),
            "ready",
            "after 0 s: m serves generation 1, not yet 2, which waits for a provider: kuberay is silent; ",
            id="silent provider",
        ),
        pytest.param(
            model(2, SERVING),
            "ready",
            "after 0 s: m serves generation 1, not yet 2, which is being updated: 1 of 1 replicas serve; "
            "kubefoundry status m",
            id="updating",
        ),
        pytest.param(
            model(1, SERVING, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x/y"]),
            "deleted",
            "is not deleted after 0 s: m is being deleted: held by x/y; wait for its provider to clean up",
            id="held by a finalizer",
        ),
        pytest.param(
            model(1, SERVING),
            "deleted",
            "is not deleted after 0 s: nobody has deleted it; kubectl -n models delete modeldeployment m",
            id="nobody deletes it",
        ),
    ],
)
async def test_wait_names_the_verdict_when_time_is_up(
    tmp_path: Path, obj: dict[str, Any], state: str, said: str
) -> None:
    with pytest.raises(Failure) as received:
        await waited(tmp_path, [obj], state, 0.0)

    assert (received.value.exit_code, said in received.value.message) == (Exit.TIMEOUT, True), received.value


async def test_wait_claims_no_deletion_it_did_not_see(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await waited(tmp_path, [], "deleted", 5.0)

    assert capsys.readouterr().err == "there is no ModelDeployment 'm' in namespace models\n"
