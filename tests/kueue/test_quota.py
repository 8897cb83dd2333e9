"""Models in a queue of the real Kueue: admitted, waiting, evicted, edited. The pods run on simulated nodes."""

from __future__ import annotations

import copy

import pytest
import yaml

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.pod import QUEUE_LABEL
from kueue.rig import POOL_LABEL
from kueue.team import QUEUE, Team
from support.waiting import message, reason, serves

WAITS = f"waits for quota in queue {QUEUE}: "
NO_QUOTA = "insufficient unused quota for nvidia.com/gpu in flavor gpu, 1 more needed"
PROVIDERS = ("direct", "kuberay")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_model_waits_until_the_quota_is_raised(team: Team, provider: str) -> None:
    await team.create("first", provider)
    await team.until("first", "Running")
    await team.create("second", provider)

    waiting = await team.until("second", "Deploying", WAITS, NO_QUOTA)
    team.grant(2)
    running = await team.until("second", "Running")

    assert not serves(waiting) and reason(waiting, "Ready") == "Progressing"
    assert serves(running)
    assert "DriftDetected" not in team.events("second")


async def test_pods_wait_again_when_kueue_evicts_them(team: Team) -> None:
    await team.create("m", "direct")
    await team.until("m", "Running")

    team.stop()
    await team.until("m", "Deploying", WAITS, "Kueue has evicted an earlier pod: The ClusterQueue is stopped")
    team.resume()
    await team.until("m", "Running")

    assert "DriftDetected" not in team.events("m")


async def test_pods_are_preempted_by_a_higher_priority(team: Team) -> None:
    await team.create("batch", "direct")
    await team.until("batch", "Running")

    await team.create("service", "direct", priority="production")

    await team.until("service", "Running")
    await team.until("batch", "Deploying", WAITS, "Kueue has evicted an earlier pod: Preempted")


async def test_evicted_ray_service_serves_again_after_a_refresh(team: Team) -> None:
    await team.create("m", "kuberay")
    await team.until("m", "Running")

    team.stop()
    evicted = await team.until(
        "m", "Deploying", WAITS, "Kueue has evicted it: The ClusterQueue is stopped", names.REFRESH_ANNOTATION
    )
    uid = team.upstream("rayservice", "m")["metadata"]["uid"]
    team.resume()
    await team.edit("m", "/metadata/annotations", {names.REFRESH_ANNOTATION: "1"})
    await team.until("m", "Running")

    assert reason(evicted, "Ready") == "Progressing"
    assert team.upstream("rayservice", "m")["metadata"]["uid"] != uid


async def test_engine_edit_keeps_the_placement_of_kueue(team: Team) -> None:
    await team.create("m", "kuberay")
    await team.until("m", "Running")
    before = team.upstream("rayservice", "m")

    edited = await team.edit("m", "/spec/engine/args", {"max-model-len": "4096"})
    await team.until("m", "Running", "1 of 1", generation=edited["metadata"]["generation"])
    after = team.upstream("rayservice", "m")

    assert "4096" in after["spec"]["serveConfigV2"]
    assert selectors(after) == selectors(before) == [{POOL_LABEL: "gpu"}] * 2
    assert cluster(after) == cluster(before)
    assert "DriftDetected" not in team.events("m")


async def test_more_replicas_recreate_the_ray_service_and_wait(team: Team) -> None:
    await team.create("m", "kuberay")
    await team.until("m", "Running")

    await team.edit("m", "/spec/scaling", {"replicas": 2})
    await team.until("m", "Deploying", WAITS)
    team.grant(2)
    await team.until("m", "Running", "2 of 2 replicas serve")

    assert (
        team.upstream("rayservice", "m")["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["replicas"] == 2
    )


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_changed_queue_is_refused_in_the_words_of_kueue(team: Team, provider: str) -> None:
    await team.create("m", provider)
    await team.until("m", "Running")

    await team.edit("m", "/metadata/labels", {QUEUE_LABEL: "other"})
    refused = await team.until_object("m", lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected")

    assert "field is immutable" in message(refused, "ResourceCreated")
    assert refused["status"]["phase"] == "Running"


async def test_default_queue_takes_pods_not_unlabelled_ray_services(team: Team) -> None:
    team.add_queue("default")

    await team.create("pods", "direct", queue="")
    await team.until("pods", "Running")
    await team.create("waiting", "direct", queue="")
    await team.create("service", "kuberay", queue="")

    await team.until("waiting", "Deploying", "waits for quota in queue default: ")
    await team.until("service", "Failed", "a kueue managed job should only use autoscaling")


async def test_kueue_refuses_the_autoscaler_of_ray(team: Team) -> None:
    await team.create("m", "kuberay")
    await team.until("m", "Running")
    service = copy.deepcopy(team.upstream("rayservice", "m"))
    service["spec"]["rayClusterConfig"]["enableInTreeAutoscaling"] = True
    service["metadata"] = {"name": "other", "namespace": team.name, "labels": {QUEUE_LABEL: QUEUE}}

    refused = team.plane.kubectl(
        "create", "--dry-run=server", "-f", "-", input=yaml.safe_dump(service), check=False
    )

    assert "a kueue managed job should only use autoscaling" in refused.stderr


def selectors(service: Object) -> list[dict[str, str]]:
    """Return the node selectors of head and workers."""
    ray_cluster = service["spec"]["rayClusterConfig"]
    groups = (ray_cluster["headGroupSpec"], *ray_cluster["workerGroupSpecs"])
    return [group["template"]["spec"]["nodeSelector"] for group in groups]


def cluster(service: Object) -> str:
    """Return the name of the RayCluster that serves."""
    return str(service["status"]["activeServiceStatus"]["rayClusterName"])
