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
