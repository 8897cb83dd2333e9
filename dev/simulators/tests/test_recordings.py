"""The simulated operators report the statuses of the recordings, in the same order.

The recordings are in ../shared. Statuses are compared by a digest of the fields that providers read, without times
and numbers.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from kubefoundry_sdk.testing.structural import violations
from kubefoundry_simulators import dynamo, kaito, kuberay
from kubefoundry_simulators.dynamo_conversion import converted
from kubefoundry_simulators.steps import (
    FAIL_ANNOTATION,
    RUNS_ANNOTATION,
    Object,
    Operator,
    Report,
    Rewrite,
    Run,
    annotated,
)
from support.timelines import states
from support.upstream import crds, requires_shared, schema

pytestmark = requires_shared

Edit = Callable[[Object], None]


def simulated(operator: Operator, object_: Object, edits: Iterable[Edit]) -> Iterator[Object]:
    """Yield the statuses that the operator reports for a new object and then for each edit."""
    object_ = copy.deepcopy(object_)
    object_["metadata"] |= {"uid": "u", "namespace": "n", "generation": 1}
    before = None
    for number, edit in enumerate([_no_edit, *edits]):
        changed = copy.deepcopy(object_)
        edit(changed)
        object_ = _stored(object_, changed)
        steps = operator.adopt(object_) if number == 0 else []
        for step in steps:
            assert isinstance(step, Rewrite)
            object_ = _stored(object_, step.change(object_))
        planned = object_
        for step in operator.plan(planned, before):
            if isinstance(step, Rewrite):
                object_ = _stored(object_, step.change(object_))
            if isinstance(step, Run):
                object_ = annotated(object_, {RUNS_ANNOTATION: json.dumps(step.workload)})
            if isinstance(step, Report):
                object_ = {**object_, "status": step.status}
                yield step.status
        before = planned


def _no_edit(object_: Object) -> None:
    """Leave the object as created."""


def _stored(old: Object, new: Object) -> Object:
    """Return the new object, with a higher generation if its spec has changed."""
    same = all(old.get(name) == new.get(name) for name in {*old, *new} - {"metadata", "status"})
    generation = old["metadata"]["generation"] + (not same)
    return {**new, "metadata": {**new["metadata"], "generation": generation}}


def failing(case: str | None) -> Edit:
    """Return an edit that requests a failure; None requests no failure."""

    def edit(object_: Object) -> None:
        annotations = dict(object_["metadata"].get("annotations") or {})
        annotations.pop(FAIL_ANNOTATION, None)
        object_["metadata"]["annotations"] = {**annotations, FAIL_ANNOTATION: case} if case else annotations

    return edit


def distinct(items: Iterable[Any]) -> list[Any]:
    """Return the items without direct repetitions. The real operators also write if only a time has changed."""
    return [item for item, _ in itertools.groupby(items)]


def conditions(status: Any) -> dict[str, tuple[str, str]]:
    return {item["type"]: (item["status"], item["reason"]) for item in status.get("conditions", [])}


def ray_digest(status: Any) -> Any:
    """Return conditions, application statuses and cluster of both sides, service status and generation."""
    sides = [status.get(f"{side}ServiceStatus", {}) for side in ("active", "pending")]
    return (
        conditions(status),
        [[app["status"] for app in side.get("applicationStatuses", {}).values()] for side in sides],
        ["rayClusterName" in side for side in sides],
        status.get("serviceStatus"),
        status.get("numServeEndpoints", 0) > 0,
        status.get("observedGeneration"),
    )


def workspace_digest(status: Any) -> Any:
    return conditions(status), status.get("state"), status.get("targetNodeCount"), "performance" in status


def graph_digest(status: Any) -> Any:
    """Return state, conditions, update phase, counts (replicas, updated, ready) and generation."""
    counts = status.get("services") or status.get("components") or {}
    return (
        status.get("state"),
        conditions(status),
        status.get("rollingUpdate", {}).get("phase"),
        {
            name: (count["replicas"], count["updatedReplicas"], count["readyReplicas"])
            for name, count in counts.items()
        },
        status.get("observedGeneration"),
    )


def recorded(recording: str, kind: str, name: str, digest: Callable[[Any], Any]) -> list[Any]:
    """Return the digests of an object's statuses in a recording."""
    history = [state for state in states(recording, kind) if state.name == name and not state.deleting]
    return distinct(digest(state.status) for state in history if state.status)


NOW = "2026-01-01T00:00:00Z"
RAY: Object = {
    "apiVersion": "ray.io/v1",
    "kind": "RayService",
    "metadata": {"name": "m1"},
    "spec": {
        "serveConfigV2": "applications: [{name: llm, args: {llm_configs: "
        "[{model_loading_config: {model_id: qwen}}]}}]",
        "rayClusterConfig": {
            "workerGroupSpecs": [
                {
                    "groupName": "gpu",
                    "replicas": 1,
                    "minReplicas": 0,
                    "maxReplicas": 8,
                    "template": {"spec": {}},
                }
            ]
        },
    },
}


def group(ray: Object) -> Any:
    return ray["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]


def serve(suffix: str, case: str | None = None) -> Edit:
    """Return an edit of serveConfigV2 that ends in the failure `case`."""

    def edit(ray: Object) -> None:
        ray["spec"]["serveConfigV2"] = RAY["spec"]["serveConfigV2"].replace("qwen", suffix)
        failing(case)(ray)

    return edit


def bounds(least: int, most: int) -> Edit:
    return lambda ray: group(ray).update(minReplicas=least, maxReplicas=most)


EDITS: list[Edit] = [
    serve("other"),
    lambda ray: group(ray).update(replicas=2),
    lambda ray: group(ray)["template"]["spec"].update(tolerations=[{"operator": "Exists"}]),
    lambda ray: group(ray)["template"]["spec"].update(containers=[{"name": "worker", "image": "new"}]),
]
FAILURES: list[Edit] = [serve("ok"), serve("b", "unhealthy"), serve("c", "deploy-failed")]


def with_bounds(least: int, most: int) -> Object:
    ray = copy.deepcopy(RAY)
    bounds(least, most)(ray)
    return ray


def asking(object_: Object, case: str) -> Object:
    """Return a copy of the object that requests a failure."""
    copied = copy.deepcopy(object_)
    failing(case)(copied)
    return copied


@pytest.mark.parametrize(
    ("recording", "name", "ray", "edits"),
    [
        ("kuberay-main-create", "ray-serve-llm", RAY, []),
        ("kuberay-1.6.2-edit", "m1", RAY, EDITS),
        ("kuberay-1.6.2-fail", "m1", asking(RAY, "deploy-failed"), FAILURES),
        ("kuberay-1.6.2-validate", "m1", with_bounds(3, 1), [bounds(1, 3), bounds(5, 3), bounds(1, 3)]),
    ],
)
def test_ray_service_statuses_equal_the_recording(
    recording: str, name: str, ray: Object, edits: list[Edit]
) -> None:
    reported = distinct(ray_digest(status) for status in simulated(kuberay.OPERATOR, ray, edits))

    assert reported == recorded(recording, "rayservices", name, ray_digest)


TEMPLATE: Object = {
    "apiVersion": "kaito.sh/v1beta1",
    "kind": "Workspace",
    "metadata": {"name": "w"},
    "resource": {"labelSelector": {"matchLabels": {"a": "b"}}},
    "inference": {"template": {"spec": {"containers": [{"name": "model", "image": "x"}]}}},
}
PRESET: Object = {**TEMPLATE, "inference": {"preset": {"name": "phi-4-mini-instruct"}}}


@pytest.mark.parametrize(
    ("recording", "name", "workspace", "edits"),
    [
        ("kaito-0.12-create", "ws-tmpl", TEMPLATE, []),
        ("kaito-0.12-create", "ws-preset", asking(PRESET, "benchmark"), []),
        ("kaito-0.12-preset", "p1", PRESET, []),
        ("kaito-0.12-preset", "p2", asking(PRESET, "unschedulable"), []),
        ("kaito-0.12-bad", "u1", asking(TEMPLATE, "unschedulable"), []),
        ("kaito-0.12-bad", "c1", TEMPLATE, [failing("crash-loop"), failing(None)]),
        ("kaito-0.12-bad", "i1", TEMPLATE, [failing("image-pull"), failing(None)]),
        ("kaito-0.12-bad", "nonode", asking(TEMPLATE, "no-nodes"), []),
    ],
)
def test_workspace_statuses_equal_the_recording(
    recording: str, name: str, workspace: Object, edits: list[Edit]
) -> None:
    reported = distinct(workspace_digest(status) for status in simulated(kaito.OPERATOR, workspace, edits))

    assert reported == recorded(recording, "workspaces", name, workspace_digest)


GRAPH: Object = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "m"},
    "spec": {"services": {"Frontend": {"componentType": "frontend"}, "Worker": {"replicas": 2}}},
}


def graph_of(replicas: int) -> Object:
    workers = {"componentType": "worker", "replicas": replicas}
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "m"},
        "spec": {"services": {"Frontend": {"componentType": "frontend"}, "VllmWorker": workers}},
    }


def graph_digests(statuses: Iterable[Any]) -> list[Any]:
    return [graph_digest(status) for status in statuses if status.get("conditions")]


def worker(**change: Any) -> Edit:
    return lambda graph: graph["spec"]["services"]["VllmWorker"].update(change)


def stuck(graph: Object) -> None:
    worker(image="none")(graph)
    failing("stuck")(graph)


def undone(graph: Object) -> None:
    graph["spec"]["services"]["VllmWorker"].pop("image")
    failing(None)(graph)


@pytest.mark.parametrize("recording", ["dynamo-1.4-edit1", "dynamo-main-edit1"])
def test_graph_update_statuses_are_in_the_recording(recording: str) -> None:
    reported = graph_digests(simulated(dynamo.OPERATOR, graph_of(1), [worker(args=["--a"])]))

    expected = recorded(recording, "dynamographdeployments", "m", graph_digest)
    assert [digest for digest in reported if digest not in expected] == []
    edited = [digest for digest in expected if digest[4] == 2]
    assert [digest for digest in reported if digest[4] == 2] == edited


def test_graph_update_statuses_equal_the_recording() -> None:
    reported = graph_digests(simulated(dynamo.OPERATOR, graph_of(3), [worker(args=["--a"])]))

    expected = recorded("dynamo-1.4-edit3", "dynamographdeployments", "m", graph_digest)
    assert [digest for digest in reported if digest[4] == 2] == [
        digest for digest in expected if digest[4] == 2
    ]


def test_stuck_graph_update_is_undone_without_a_restart() -> None:
    reported = graph_digests(simulated(dynamo.OPERATOR, graph_of(1), [stuck, undone]))

    expected = recorded("dynamo-1.4-badimage1", "dynamographdeployments", "m", graph_digest)
    last = [digest for digest in expected if digest[4] == 3]
    assert [digest for digest in reported if digest[4] == 3] == last
    assert {digest[1]["Ready"][1] for digest in reported if digest[4] == 2} == {"rolling_update_in_progress"}


SUSPENDED: Object = {**RAY, "spec": {**RAY["spec"], "suspend": True}}


@pytest.mark.parametrize(
    ("operator", "object_", "edits"),
    [
        (kaito.OPERATOR, PRESET, [failing("benchmark"), failing("crash-loop")]),
        (kaito.OPERATOR, {**TEMPLATE, "resource": {"instanceType": "gpu-1"}}, []),
        (dynamo.OPERATOR, GRAPH, [failing("failed"), failing("not-ready"), failing(None)]),
        (kuberay.OPERATOR, RAY, [*EDITS, *FAILURES, bounds(2, 1)]),
        (kuberay.OPERATOR, SUSPENDED, []),
    ],
    ids=["kaito", "kaito auto", "dynamo", "kuberay", "kuberay suspended"],
)
def test_every_crd_release_accepts_the_statuses(
    operator: Operator, object_: Object, edits: list[Edit]
) -> None:
    violated = set()
    for crd in crds(operator.name):
        object_schema = schema(crd, crd.storage_version)
        if operator.name == "dynamo" and crd.storage_version == "v1beta1":
            object_ = converted(object_, "nvidia.com/v1beta1")
        for status in simulated(operator, object_, edits):
            timed = {"conditions": [], **json.loads(json.dumps(status).replace("<now>", NOW))}
            timed["conditions"] = [{**item, "lastTransitionTime": NOW} for item in timed["conditions"]]
            messages = violations(object_schema, {**object_, "status": timed})
            # The API server prunes fields that an older release does not have.
            violated |= {
                f"{crd}: {message}"
                for message in messages
                if message.startswith("status") and not message.endswith("unknown field")
            }
    assert violated == set()
