"""A simulated operator survives a custom resource without a spec, which the API server accepts."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_simulators import dynamo, kaito, kuberay
from kubefoundry_simulators.admission import dynamo_refusal
from kubefoundry_simulators.dynamo_conversion import converted
from kubefoundry_simulators.steps import Object, Operator, Report, Rewrite

KINDS = [
    (kaito.OPERATOR, "kaito.sh/v1beta1", "Workspace"),
    (kuberay.OPERATOR, "ray.io/v1", "RayService"),
    (dynamo.OPERATOR, "nvidia.com/v1alpha1", "DynamoGraphDeployment"),
    (dynamo.OPERATOR, "nvidia.com/v1beta1", "DynamoGraphDeployment"),
]


@pytest.mark.parametrize("rest", [{}, {"spec": None}, {"spec": {}}], ids=["none", "null", "empty"])
@pytest.mark.parametrize(("operator", "api_version", "kind"), KINDS)
def test_object_without_a_spec_is_planned(
    operator: Operator, api_version: str, kind: str, rest: dict[str, Any]
) -> None:
    object_: Object = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "m", "namespace": "n", "uid": "u", "generation": 1},
        **rest,
    }
    before = None
    for _ in range(3):
        after = object_
        for step in (*operator.adopt(object_), *operator.plan(object_, before)):
            if isinstance(step, Rewrite):
                after = step.change(after)
            elif isinstance(step, Report):
                after = {**after, "status": step.status}
        before, object_ = object_, after

    assert object_["status"]
    assert operator.leave(object_)


@pytest.mark.parametrize("api_version", ["nvidia.com/v1alpha1", "nvidia.com/v1beta1"])
def test_webhook_refuses_a_graph_without_a_spec(api_version: str) -> None:
    graph: Object = {"apiVersion": api_version, "kind": "DynamoGraphDeployment", "metadata": {"name": "m"}}

    assert converted(graph, "nvidia.com/v1beta1")["apiVersion"] == "nvidia.com/v1beta1"
    assert "at least one service" in str(dynamo_refusal(graph, None, needs_images=True))
