"""Tests the existing operator next to ours: reported once, left alone, and replaced after the user's
confirmation."""

from __future__ import annotations

import pytest
import yaml

from kubefoundry_llamastack.names import DEPLOYMENTS, LLSD
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.client import Client
from support import llamastack_recordings as recordings
from support.events import until_event
from support.llamastack import condition_of, deployment, edit, llsd, reason, until_object, until_status

pytestmark = pytest.mark.integration


def image(live: Object) -> str:
    return str(live["spec"]["template"]["spec"]["containers"][0]["image"])


async def its_write(api: Client, name: str, namespace: str) -> None:
    """Apply as the existing operator: under the CR's name, by force."""
    live = await api.get(DEPLOYMENTS, name, namespace)
    container = {"name": "llama-stack", "image": "example.com/its:1"}
    body = {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": live["spec"]["selector"], "template": {"spec": {"containers": [container]}}},
    }
    await api.apply(DEPLOYMENTS, body, manager=name)


async def test_old_operator_writes_are_left_alone(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, llsd("shared", namespace), manager="user")
    await deployment(api, "shared", namespace)

    await its_write(api, "shared", namespace)
    status = await until_status(
        api, "shared", namespace, lambda status: reason(status, "SoleOperator") == "OldOperatorRunning"
    )
    await until_event(api, namespace, "OldOperatorRunning")
    left = await api.get(DEPLOYMENTS, "shared", namespace)

    def gone(cr: Object) -> None:
        cr["metadata"].setdefault("annotations", {})[names.REFRESH_ANNOTATION] = "1"

    await edit(api, "shared", namespace, gone)
    back = await until_object(
        api, DEPLOYMENTS, "shared", namespace, lambda obj: image(obj) == "example.com/stack:1"
    )
    after = await until_status(api, "shared", namespace, lambda status: not reason(status, "SoleOperator"))

    assert image(left) == "example.com/its:1"
    assert "scale its Deployment" in condition_of(status, "SoleOperator")["message"]
    assert "shared" not in {entry["manager"] for entry in back["metadata"]["managedFields"]}
    assert reason(after, "DeploymentReady") == "DeploymentPending"


@pytest.mark.upstream
@recordings.needed
async def test_old_operator_crd_is_reported(api: Client, idle: Suite) -> None:
    idle.start("llamastack")
    await api.create(LLSD, llsd("pruned", "default"), manager="user")
    await deployment(api, "pruned", "default")
    its = yaml.safe_load((recordings.FOLDER / "llamastack.io_llamastackdistributions.yaml").read_text())
    # Kubernetes before 1.30 refuses this field of a CRD in an apply.
    its["spec"]["versions"][0].pop("selectableFields", None)

    idle.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=yaml.safe_dump(its))

    status = await until_status(
        api, "pruned", "default", lambda status: reason(status, "SoleOperator") == "OldCRDInstalled"
    )
    assert "externalProviders" in condition_of(status, "SoleOperator")["message"]
