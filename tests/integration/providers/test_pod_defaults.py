"""`--pod-…` on a real API server: new models have the settings, running ones take them with a refresh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.names import REFRESH_ANNOTATION
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import CPU, model_deployment
from support.restarts import restarted
from support.waiting import until
from support.wishes import annotate, change_spec

pytestmark = pytest.mark.integration

FLAGS = {
    "KUBEFOUNDRY_POD_HTTPS_PROXY": "http://proxy.example.com:3128",
    "KUBEFOUNDRY_POD_CA_BUNDLE": "company-ca/ca.crt",
}


def names(obj: Object | None) -> set[str]:
    """Return the names of the variables of a Deployment's container."""
    if obj is None:
        return set()
    [container] = obj["spec"]["template"]["spec"]["containers"]
    return {variable["name"] for variable in container["env"]}


def has_settings(obj: Object | None) -> bool:
    return {"HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE"} <= names(obj)


async def create(api: Client, namespace: str, name: str) -> None:
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment(name, namespace, CPU, provider="direct"), manager="test"
    )


async def test_new_flag_reaches_a_running_model_by_refresh(
    suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    await create(api, namespace, "m")
    before = await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)
    assert before is not None
    with restarted(suite.components["direct"], FLAGS):
        await create(api, namespace, "new")
        new = await until(api, DEPLOYMENTS, "new", namespace, has_settings)
        untouched = await api.get(DEPLOYMENTS, "m", namespace)
        await change_spec(api, namespace, "/spec/scaling", {"replicas": 2})
        edited = await until(api, DEPLOYMENTS, "m", namespace, replicas_are(2))
        planned = await plan_of_refresh(suite, api, namespace, tmp_path)
        await annotate(api, namespace, REFRESH_ANNOTATION, "1")
        await until(api, DEPLOYMENTS, "m", namespace, has_settings)

    assert new is not None
    [volume] = [
        volume
        for volume in new["spec"]["template"]["spec"]["volumes"]
        if volume["name"] == "kubefoundry-ca-bundle"
    ]
    assert volume["configMap"]["name"] == "company-ca"
    assert untouched["metadata"]["generation"] == before["metadata"]["generation"]
    assert names(edited) == names(before)
    assert "HTTPS_PROXY" in planned
    assert "http://proxy.example.com:3128" in planned


def replicas_are(number: int) -> Any:
    return lambda obj: (obj or {"spec": {}})["spec"].get("replicas") == number


async def plan_of_refresh(suite: Suite, api: Client, namespace: str, folder: Path) -> str:
    """Return what `kubefoundry plan` prints for the model with another value of the annotation."""
    live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    live["metadata"].setdefault("annotations", {})[REFRESH_ANNOTATION] = "1"
    del live["metadata"]["resourceVersion"]
    file = folder / "m.yaml"
    file.write_text(yaml.safe_dump(live))
    done = await CommandLine(suite.plane.kubeconfig, namespace)("plan", "-f", str(file))
    assert done.code == 0, done.err
    return done.out
