"""`scale` refuses the numbers that `plan` refuses, with the flags and the CRD that the cluster has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from kubefoundry_cli.providers import installed
from kubefoundry_sdk._api.validation import default
from kubefoundry_sdk._provider.registration import registration
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving
from support.upstream import PROVIDERS, crds, standin

SUSPEND = "suspend"
NUMBERS = (0, 1, 2, 100_000, 999_999_999)


def without_suspend(crd: dict[str, Any]) -> dict[str, Any]:
    crd = deepcopy(crd)
    for served in crd["spec"]["versions"]:
        served["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop(SUSPEND, None)
    return crd


def installations() -> Iterator[Any]:
    """Yield provider and CRDs of each installation: the stand-in, one without `suspend`, and each real release."""
    yield pytest.param("direct", [], id="direct")
    yield pytest.param("kuberay", [without_suspend(standin("kuberay").document)], id="kuberay-no-suspend")
    for provider in PROVIDERS:
        own = standin(provider).document
        yield pytest.param(provider, [own], id=f"{provider}-standin")
        yield pytest.param(provider, [], id=f"{provider}-no-crd")
        for crd in crds(provider):
            yield pytest.param(provider, [crd.document], id=f"{provider}-{crd.name}")


def cluster_with(provider: str, crds: list[dict[str, Any]]) -> Answers:
    """Return a cluster with model `m`, which names the provider and asks for 3 replicas."""
    answers = Answers()
    spec = default({**GPU, "provider": {"name": provider}, "scaling": {"replicas": 3}})
    obj = model_deployment("m", "models", spec, uid="u", generation=1, resourceVersion="1")
    running = {
        "ready": True,
        "version": f"{provider}-provider:v{version('kubefoundry-provider-' + provider)}",
    }
    plurals = ("workspaces", "dynamographdeployments", "rayservices", "configmaps", "services", "deployments")
    answers.objects = {
        **{plural: [] for plural in plurals},
        "modeldeployments": [obj],
        "inferenceproviderconfigs": [{**registration(installed()[provider]), "status": running}],
        "customresourcedefinitions": crds,
    }
    return answers


@pytest.mark.parametrize(("provider", "crds"), [*installations()])
def test_scale_and_plan_refuse_the_same_edits(
    call: Callable[..., Result], tmp_path: Path, provider: str, crds: list[dict[str, Any]]
) -> None:
    with serving(cluster_with(provider, crds), tmp_path) as kubeconfig:
        for number in NUMBERS:
            options = ("--kubeconfig", str(kubeconfig))
            planned = call("plan", "m", "--set", f"scaling.replicas={number}", *options)
            scaled = call("scale", "m", str(number), *options)

            assert scaled.exit_code == planned.exit_code, (number, planned.stderr, scaled.stderr)
            if planned.exit_code:
                reason = planned.stderr.splitlines()[-1].partition(": ")[2].partition(": ")[2]
                assert reason in scaled.stderr
                assert scaled.stderr.endswith(". Nothing was changed\n")


def test_scale_to_zero_is_refused_without_suspend(call: Callable[..., Result], tmp_path: Path) -> None:
    answers = cluster_with("kuberay", [without_suspend(standin("kuberay").document)])

    with serving(answers, tmp_path) as kubeconfig:
        done = call("scale", "m", "0", "--kubeconfig", str(kubeconfig))

    assert done.exit_code == 1
    assert "the installed RayService CRD has no spec.suspend" in done.stderr
