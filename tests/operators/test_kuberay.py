"""ModelDeployments on the real KubeRay operator: what we say at each step of their lives, and what serves then."""

from __future__ import annotations

from typing import Any

from kubefoundry_nodes.ray.autoscaler import RAY_CLUSTERS
from kubefoundry_nodes.ray.program import PODS
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from operators.life import NAME, SERVICE, Life
from support.deployments import GPU, model_deployment
from support.kinds import WORKSPACES
from support.waiting import message, reason, serves, until

SERVICES = Kind("", "v1", "services", "Service")

TOO_LONG = 1_000_000
"""A context length that no model here has."""

REFUSED = [{"name": "REDIS_USERNAME", "value": "someone"}]
"""Environment of a head that KubeRay refuses (ray-operator/controllers/ray/utils/validation.go, 1.6.2)."""


async def create(life: Life, **fields: Any) -> Object:
    body = model_deployment(NAME, life.namespace, {**GPU, **fields}, provider="kuberay")
    return await life.api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def change(life: Life, pointer: str, value: Any) -> Object:
    operation = {"op": "add", "path": pointer, "value": value}
    return await life.api.json_patch(MODEL_DEPLOYMENTS, NAME, life.namespace, [operation], manager="test")


async def delete(life: Life) -> None:
    await life.api.delete(MODEL_DEPLOYMENTS, NAME, life.namespace, uid=life.deployment["metadata"]["uid"])


def seen(life: Life) -> bool:
    """Whether the provider has looked at the current spec. `observedGeneration` names the one that serves."""
    obj = life.deployment
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(
        item["type"] == "ProviderCompatible" and item["observedGeneration"] == obj["metadata"]["generation"]
        for item in conditions
    )


def running(life: Life, replicas: int) -> bool:
    """All replicas of the current spec, and nothing else to say."""
    status = life.deployment.get("status") or {}
    return (
        serves(life.deployment)
        and status["message"] == f"{replicas} of {replicas} replicas serve"
        and status["endpoint"] == {"service": SERVICE, "port": 8000}
        and life.serves
    )


def says(life: Life, what: str, *words: str) -> bool:
    """Whether that is our phase for the current spec, with these words in the message."""
    status = life.deployment.get("status") or {}
    return seen(life) and status["phase"] == what and all(word in status["message"] for word in words)


def cluster(life: Life) -> str:
    """Name of the RayCluster that has the traffic."""
    assert life.service is not None
    return str(life.service["status"]["activeServiceStatus"]["rayClusterName"])


def endpoints(life: Life) -> int:
    """Pods behind the Serve Service, the head and a worker for each replica."""
    assert life.service is not None
    return int(life.service["status"]["numServeEndpoints"])


async def test_kuberay_model_serves_scales_and_is_deleted(life: Life) -> None:
    await life.step("create", create(life), lambda: running(life, 1))
    first = cluster(life)

    await life.step("replicas 1 to 3", change(life, "/spec/scaling/replicas", 3), lambda: running(life, 3))
    assert life.phases == ["Running"]
    assert endpoints(life) == 4

    await life.step(
        "replicas 3 to 1",
        change(life, "/spec/scaling/replicas", 1),
        lambda: running(life, 1) and endpoints(life) == 2,
    )
    assert life.phases == ["Running"]
    assert cluster(life) == first

    await life.step("delete", delete(life), lambda: gone(life))
    await nothing_left(life)


async def test_engine_edit_is_rolled_out_in_the_running_cluster(life: Life) -> None:
    await life.step("create, 3 replicas", create(life, scaling={"replicas": 3}), lambda: running(life, 3))
    first = cluster(life)

    await life.step(
        "engine args edit",
        change(life, "/spec/engine/args", {"max-model-len": "4096"}),
        lambda: running(life, 3) and life.context == 4096,
    )
    assert life.phases == ["Running"]
    assert life.silent.longest < 1
    assert cluster(life) == first


async def test_single_engine_is_replaced_without_an_overlap(life: Life) -> None:
    await life.step("create", create(life), lambda: running(life, 1))

    await life.step(
        "engine args edit, 1 replica",
        change(life, "/spec/engine/args", {"max-model-len": "4096"}),
        lambda: running(life, 1) and life.context == 4096,
    )
    assert life.phases == ["Running", "Deploying", "Running"]

    await life.step(
        "an update that fails, 1 replica",
        change(life, "/spec/engine/args", {"max-model-len": str(TOO_LONG)}),
        lambda: says(life, "Failed", "max_model_len"),
    )
    assert not life.serves

    await life.step(
        "its repair",
        change(life, "/spec/engine/args", {"max-model-len": "8192"}),
        lambda: running(life, 1) and life.context == 8192,
    )


async def test_image_edit_switches_to_a_new_cluster(life: Life) -> None:
    await life.step("create", create(life), lambda: running(life, 1))
    first = cluster(life)

    await life.step(
        "image edit",
        change(life, "/spec/image", "rayproject/ray-llm:2.60.0-py312-cu130"),
        lambda: running(life, 1) and cluster(life) != first,
    )
    assert life.phases == ["Running"]
    assert life.silent.longest < 1


async def test_failed_kuberay_update_is_reported_and_repaired(life: Life) -> None:
    await life.step("create, 3 replicas", create(life, scaling={"replicas": 3}), lambda: running(life, 3))

    await life.step(
        "an update that fails",
        change(life, "/spec/engine/contextLength", TOO_LONG),
        lambda: says(life, "Running", "the latest change failed", "max_model_len"),
    )
    assert life.phases == ["Running"]
    assert life.serves and life.silent.longest < 1

    await life.step(
        "its repair",
        change(life, "/spec/engine/contextLength", 8192),
        lambda: running(life, 3) and life.context == 8192,
    )
    assert life.phases == ["Running"]
    assert life.silent.longest < 1


async def test_model_that_cannot_start_is_failed_and_repaired(life: Life) -> None:
    await life.step(
        "create, what no engine can",
        create(life, engine={**GPU["engine"], "contextLength": TOO_LONG}),
        lambda: says(life, "Failed", "max_model_len"),
    )

    await life.step("its repair", change(life, "/spec/engine/contextLength", 8192), lambda: running(life, 1))


async def test_new_model_refused_by_kuberay_fails_until_edited(life: Life) -> None:
    await life.step(
        "create, refused by KubeRay",
        create(life, env=REFUSED),
        lambda: says(life, "Failed", "KubeRay refuses the RayService", "redis username"),
    )

    await life.step("its repair", change(life, "/spec/env", []), lambda: running(life, 1))


async def test_edit_refused_by_kuberay_leaves_the_model_serving(life: Life) -> None:
    await life.step("create", create(life), lambda: running(life, 1))

    await life.step(
        "an edit refused by KubeRay",
        change(life, "/spec/env", REFUSED),
        lambda: says(life, "Running", "the latest change failed", "redis username"),
    )
    assert life.phases == ["Running"]

    await life.step("its repair", change(life, "/spec/env", []), lambda: running(life, 1))
    assert life.phases == ["Running"]
    assert life.silent.longest < 1


async def test_lost_head_is_not_called_running_for_long(life: Life) -> None:
    await life.step("create", create(life), lambda: running(life, 1))
    [head], _ = await life.api.list(PODS, life.namespace, selector={"labelSelector": "ray.io/node-type=head"})

    await life.step(
        "head pod lost",
        life.api.delete(PODS, head["metadata"]["name"], life.namespace, uid=head["metadata"]["uid"]),
        lambda: life.silent.longest > 0 and running(life, 1),
    )


async def test_no_replicas_are_refused_by_this_kuberay(life: Life) -> None:
    await life.step("create", create(life), lambda: running(life, 1))

    await life.step(
        "0 replicas",
        change(life, "/spec/scaling/replicas", 0),
        lambda: seen(life) and reason(life.deployment, "ProviderCompatible") == "Unsupported",
    )
    assert "no spec.suspend" in message(life.deployment, "ProviderCompatible")
    assert life.phases == ["Running"] and life.serves

    await life.step("1 replica again", change(life, "/spec/scaling/replicas", 1), lambda: running(life, 1))
    assert life.phases == ["Running"]
    assert life.silent.longest < 1


async def test_kuberay_model_is_handed_over_and_back(life: Life) -> None:
    await life.step("create", create(life), lambda: running(life, 1))

    await life.step(
        "to kaito (simulated)",
        change(life, "/spec/provider/name", "kaito"),
        lambda: (
            says(life, "Running")
            and life.deployment["status"]["endpoint"]["service"] == NAME
            and life.service is None
            and not life.serves
        ),
    )

    await life.step(
        "back to kuberay", change(life, "/spec/provider/name", "kuberay"), lambda: running(life, 1)
    )
    workspaces, _ = await life.api.list(WORKSPACES, life.namespace)
    assert not workspaces


def gone(life: Life) -> bool:
    return life.latest["modeldeployments"] is None and life.service is None and not life.serves


async def nothing_left(life: Life) -> None:
    """Waits for the garbage collector: neither pods nor Services nor RayClusters."""
    for kind in (RAY_CLUSTERS, PODS, SERVICES):
        for obj in (await life.api.list(kind, life.namespace))[0]:
            await until(life.api, kind, obj["metadata"]["name"], life.namespace, lambda found: found is None)
