"""A provider of this release on earlier CRDs, whose status lacks `endpoint.model`, `endpoint.apis` or `start`."""

from __future__ import annotations

import pytest

from kubefoundry_local.apply import apply
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support import pods
from support.admission import crd_of_deployments
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.suites import install_crd
from support.upstream import standin
from support.waiting import phase, serves, until_deployment

pytestmark = pytest.mark.integration


GENERATING = {**GPU, "engine": {"type": "vllm", "args": {"runner": "generate"}}}


def without(*lacking: str) -> Object:
    """Return our CRD without these fields of the status (`start`) or of its endpoint (`model`)."""
    crd: Object = crd_of_deployments()
    for version in crd["spec"]["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        for name in lacking:
            del (status if name in status else status["endpoint"]["properties"])[name]
    return crd


@pytest.mark.parametrize("lacking", [{"model", "apis"}, {"apis"}], ids=["both", "apis"])
async def test_model_runs_without_the_new_field(
    fresh: Suite, api: Client, namespace: str, lacking: set[str]
) -> None:
    apply(fresh.plane, [without(*lacking)])
    install_crd(fresh, standin("dynamo").document)
    fresh.simulate("dynamo")
    fresh.start("core", "dynamo")
    audit = AuditLog(fresh)

    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GENERATING, provider="dynamo"), manager="user"
    )
    serving = await until_deployment(api, "m", namespace, serves)
    edit = [{"op": "add", "path": "/spec/scaling", "value": {"replicas": 2}}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, edit, manager="user")
    await until_deployment(api, "m", namespace, lambda obj: serves(obj) and replicas(obj) == 2)

    assert serving["status"]["endpoint"].keys() == {"service", "port", "model", "apis"} - lacking
    requests = audit.requests("provider-dynamo", namespace, "modeldeployments")
    assert [entry["responseStatus"]["code"] for entry in requests].count(500) == len(lacking)


async def test_failing_model_is_reported_without_its_start(fresh: Suite, api: Client, namespace: str) -> None:
    apply(fresh.plane, [without("start")])
    install_crd(fresh, standin("dynamo").document)
    fresh.simulate("dynamo")
    fresh.start("core", "dynamo")
    audit = AuditLog(fresh)
    label = {"nvidia.com/dynamo-graph-deployment-name": "m"}

    stuck = {"labels": {"kubefoundry.ai/simulator-fail": "not-ready"}}
    body = model_deployment("m", namespace, GENERATING, provider="dynamo", **stuck)
    await api.create(MODEL_DEPLOYMENTS, body, manager="user")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Deploying")
    await pods.pod(api, namespace, "m-0", label, pods.waiting("ErrImagePull", "no such tag"))
    failed = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Failed")

    assert "no such tag" in failed["status"]["message"]
    assert "start" not in failed["status"]
    requests = audit.requests("provider-dynamo", namespace, "modeldeployments")
    assert [entry["responseStatus"]["code"] for entry in requests].count(500) == 1


def replicas(obj: Object) -> int:
    return int(obj["status"]["replicas"]["ready"])
