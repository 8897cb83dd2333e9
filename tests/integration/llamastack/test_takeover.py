"""Tests the start over children of the existing operator: running pods stay, and later edits clean up."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from kubefoundry_llamastack.names import DEPLOYMENTS, LLSD, MANAGER, OPERATOR_CONFIG
from kubefoundry_local.suite import NAMESPACE, Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Object
from kubefoundry_sdk._cluster.client import Client
from support import llamastack_recordings as recordings
from support.llamastack import edit, until_object, until_status
from support.llamastack_recordings import Case

from .test_recorded_children import KINDS

pytestmark = [pytest.mark.integration, pytest.mark.upstream, recordings.needed]


async def as_recorded(api: Client, stack: Suite, case: Case, *, owned: bool) -> None:
    """Create the CR and its children as the existing operator leaves them: created as `manager`, applied as
    the CR, and after some of its edits without an owner."""
    ground: list[Object] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.namespace}}]
    ground += [obj for obj in recordings.inputs() if obj["metadata"].get("namespace") == case.namespace]
    stack.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(ground))
    cr = await api.create(LLSD, recordings.wish(case), manager="user")
    versions: dict[str, str] = {}
    for child in sorted(case.children, key=lambda item: item["kind"] == "Deployment"):
        kind, body = KINDS[child["kind"]], prepared(child, cr)
        if not owned:
            body["metadata"].pop("ownerReferences", None)
        if child["kind"] == "Deployment":
            await mark(api, body, case, versions)
        created = await api.create(kind, body, manager="manager")
        versions[created["metadata"]["name"]] = created["metadata"]["resourceVersion"]
        if child["kind"] not in ("PersistentVolumeClaim", "Ingress", "ConfigMap"):
            await api.apply(kind, body, manager=cr["metadata"]["name"])


def prepared(child: Object, cr: Object) -> Object:
    """Return the recorded child as a request."""
    body = copy.deepcopy(child)
    body.pop("status", None)
    body["metadata"].pop("finalizers", None)
    for owner in body["metadata"].get("ownerReferences", ()):
        owner["uid"] = cr["metadata"]["uid"]
    for key in ("clusterIP", "clusterIPs"):
        body.get("spec", {}).pop(key, None)
    return body


async def mark(api: Client, body: Object, case: Case, versions: dict[str, str]) -> None:
    """Replace the recording's placeholder by resource versions of this cluster."""
    annotations: dict[str, str] = body["spec"]["template"]["metadata"].get("annotations", {})
    for key, value in annotations.items():
        name = value.removeprefix("RESOURCEVERSION-")
        if name not in versions:
            config_map = await api.get(CONFIG_MAPS, name, case.namespace)
            versions[name] = config_map["metadata"]["resourceVersion"]
        annotations[key] = f"{versions[name]}-{name}"


async def generations(api: Client, cases: list[Case]) -> dict[str, int]:
    generation_of = {}
    for case in cases:
        live = await api.get(DEPLOYMENTS, case.cr["metadata"]["name"], case.namespace)
        generation_of[case.name] = live["metadata"]["generation"]
    return generation_of


def ours(obj: Object) -> bool:
    """Check whether only we own the operator's fields of the object."""
    managers = {
        (entry["manager"], entry["operation"])
        for entry in obj["metadata"]["managedFields"]
        if not entry.get("subresource")
    }
    is_applied_by_us = (MANAGER, "Apply") in managers
    return (
        is_applied_by_us
        and ("manager", "Update") not in managers
        and (obj["metadata"]["name"], "Apply") not in managers
    )


@pytest.mark.parametrize("owned", [True, False], ids=["owned", "owner lost"])
async def test_take_over_replaces_no_pod_until_next_edit(api: Client, idle: Suite, owned: bool) -> None:
    cases = recordings.cases()
    config = next(obj for obj in recordings.inputs() if obj["metadata"]["name"] == OPERATOR_CONFIG)
    config["metadata"]["namespace"] = NAMESPACE
    config["data"]["featureFlags"] = "enableNetworkPolicy: {enabled: true}"
    role = next(obj for obj in recordings.inputs() if obj["kind"] == "ClusterRole")
    idle.plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all([config, role]))
    for case in cases:
        await as_recorded(api, idle, case, owned=owned)
    before = await generations(api, cases)

    idle.start("llamastack")
    for case in cases:
        await until_object(api, DEPLOYMENTS, case.cr["metadata"]["name"], case.namespace, ours)
        await until_status(
            api, case.cr["metadata"]["name"], case.namespace, lambda status: "operatorVersion" in str(status)
        )
    adopted = await generations(api, cases)
    idle.components["llamastack"].stop()
    idle.components["llamastack"].start()
    idle.components["llamastack"].wait_ready()
    case = next(case for case in cases if case.name.endswith("container-spec"))
    await edit(api, "container", case.namespace, without_env)
    cleaned = await until_object(
        api, DEPLOYMENTS, "container", case.namespace, lambda obj: obj["metadata"]["generation"] > 1
    )
    await edit(api, "byimage", "lls-02-by-image", lambda cr: cr["spec"]["server"].update(storage={}))
    stored = await until_object(
        api, DEPLOYMENTS, "byimage", "lls-02-by-image", lambda obj: obj["metadata"]["generation"] > 1
    )
    after = await generations(api, cases)

    for each in cases:
        live = await api.get(DEPLOYMENTS, each.cr["metadata"]["name"], each.namespace)
        assert [item["controller"] for item in live["metadata"]["ownerReferences"]] == [True]
    print("\ngenerations before and after:", before, adopted)
    assert adopted == before
    assert {name for name in after if after[name] != before[name]} == {case.name, "02-by-image"}
    assert stored["spec"]["strategy"] == {"type": "Recreate"}
    [container] = cleaned["spec"]["template"]["spec"]["containers"]
    assert "A_FIRST" not in {item["name"] for item in container["env"]}
    assert "args" not in container
    assert {"readinessProbe", "livenessProbe"} <= set(container), (
        "what a take-over leaves out comes with a change"
    )


def without_env(cr: Object) -> None:
    server: dict[str, Any] = cr["spec"]["server"]["containerSpec"]
    server["env"] = [item for item in server["env"] if item["name"] != "A_FIRST"]
    del server["args"]
