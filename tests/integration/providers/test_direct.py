"""Provider direct with Kubernetes' own controllers: all is real but the node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, PODS, SERVICES, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support import pods
from support.audit import AuditLog
from support.deployments import CPU, model_deployment
from support.played_pods import node, ready_status
from support.restored import as_restored
from support.suites import running_suite
from support.waiting import message, phase, reason, serves, until, until_deployment
from support.wishes import change_spec

pytestmark = pytest.mark.integration

QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota", built_in=True)
SCALERS = Kind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", built_in=True)
OTHER_IMAGE = "example.com/llama-cpp:2.0.0"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Core, selector, KAITO and direct, with all of Kubernetes' controllers."""
    with running_suite(tmp_path_factory.mktemp("direct"), "kaito", plane_flags=["--all-controllers"]) as made:
        made.start("core", "selector", "kaito", "direct")
        yield made


async def created(api: Client, namespace: str, *, provider: str | None = "direct", **spec: Any) -> Object:
    body = model_deployment("m", namespace, {**CPU, **spec}, provider=provider)
    return await api.create(MODEL_DEPLOYMENTS, body, manager="test")


def is_running(obj: Object, replicas: int = 1) -> bool:
    """For its newest generation, with that many replicas."""
    return (
        phase(obj) == "Running"
        and obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
        and obj["status"]["replicas"] == {"desired": replicas, "ready": replicas, "available": replicas}
    )


async def test_direct_model_serves_scales_and_is_deleted(suite: Suite, api: Client, namespace: str) -> None:
    made = await created(api, namespace)
    async with node(api, namespace):
        running = await until_deployment(api, "m", namespace, is_running)
        assert running["status"]["endpoint"] == {
            "service": "m-server",
            "port": 8000,
            "model": "model-gguf",
            "apis": ["openai-chat", "openai-completions"],
        }
        assert running["status"]["provider"]["resourceKind"] == "Deployment"
        assert running["status"]["provider"]["resourceAPIVersion"] == "apps/v1"

        suite.plane.kubectl("scale", "md/m", "-n", namespace, "--replicas=3")
        await until_deployment(api, "m", namespace, lambda obj: is_running(obj, 3))

        suite.plane.kubectl("scale", "md/m", "-n", namespace, "--replicas=0")
        zero = await until_deployment(api, "m", namespace, lambda obj: reason(obj, "Ready") == "ScaledToZero")
        assert "endpoint" not in zero["status"]

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])
    for kind, name in ((MODEL_DEPLOYMENTS, "m"), (DEPLOYMENTS, "m"), (SERVICES, "m-server")):
        await until(api, kind, name, namespace, lambda obj: obj is None)


async def test_restarted_provider_reports_the_listed_pods(suite: Suite, api: Client, namespace: str) -> None:
    """The items of a list of built-in objects have no apiVersion and kind, unlike the events of a watch."""
    await created(api, namespace)
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
    )
    suite.components["direct"].stop()
    try:
        async with node(api, namespace):
            await until(api, DEPLOYMENTS, "m", namespace, available)
    finally:
        suite.start("direct")

    await until_deployment(api, "m", namespace, is_running)


async def test_pod_settings_are_applied_without_drift(suite: Suite, api: Client, namespace: str) -> None:
    settings = {
        "spec": {
            "securityContext": {"runAsUser": 2000},
            "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1024Mi"}}],
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
            ],
        },
        "container": {"volumeMounts": [{"name": "scratch", "mountPath": "/scratch", "readOnly": False}]},
    }
    await created(api, namespace, podTemplate=settings)
    async with node(api, namespace):
        running = await until_deployment(api, "m", namespace, is_running)

    live = await api.get(DEPLOYMENTS, "m", namespace)
    pod = live["spec"]["template"]["spec"]
    assert {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}} in pod["volumes"]
    assert {"name": "scratch", "mountPath": "/scratch"} in pod["containers"][0]["volumeMounts"]
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]) == (2000, 2000)
    assert live["metadata"]["generation"] == 1
    assert reason(running, "Ready") == "DeploymentReady"


def available(obj: Object | None) -> bool:
    return bool(obj and (obj.get("status") or {}).get("availableReplicas"))


async def test_scale_subresource_names_the_pods(suite: Suite, api: Client, namespace: str) -> None:
    """A HorizontalPodAutoscaler reads them there, and refuses to work without."""
    await created(api, namespace)
    async with node(api, namespace):
        await until_deployment(api, "m", namespace, is_running)
    target = {"apiVersion": "kubefoundry.ai/v1alpha1", "kind": "ModelDeployment", "name": "m"}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    scaler = {
        "apiVersion": SCALERS.api_version,
        "kind": SCALERS.kind,
        "metadata": {"name": "m", "namespace": namespace},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": [metric]},
    }

    await api.create(SCALERS, scaler, manager="test")

    def found_out(obj: Object | None) -> bool:
        received = {item["type"]: item for item in ((obj or {}).get("status") or {}).get("conditions") or ()}
        return "ScalingActive" in received

    seen = await until(api, SCALERS, "m", namespace, found_out)
    assert seen is not None
    received = {item["type"]: item for item in seen["status"]["conditions"]}
    assert received["AbleToScale"]["reason"] == "SucceededGetScale"
    # There is no metrics server here: with the selector it gets as far as asking for one.
    assert received["ScalingActive"]["reason"] == "FailedGetResourceMetric"


async def test_autoscalers_count_stays_until_the_user_changes_it(
    suite: Suite, api: Client, namespace: str
) -> None:
    await created(api, namespace)
    async with node(api, namespace):
        await until_deployment(api, "m", namespace, is_running)

        suite.plane.kubectl("scale", "deployment/m", "-n", namespace, "--replicas=2")
        await until_deployment(api, "m", namespace, lambda obj: is_running(obj, 2))
        await change_spec(api, namespace, "/spec/image", OTHER_IMAGE)
        await until_deployment(api, "m", namespace, lambda obj: is_running(obj, 2))
        assert image(await api.get(DEPLOYMENTS, "m", namespace)) == OTHER_IMAGE

        await change_spec(api, namespace, "/spec/scaling", {"replicas": 3})
        await until_deployment(api, "m", namespace, lambda obj: is_running(obj, 3))


async def test_while_old_pods_serve_the_status_is_of_before(
    suite: Suite, api: Client, namespace: str
) -> None:
    """A new pod that does not get ready: the old one goes on, and nobody is reported that the change is there."""
    await created(api, namespace)
    async with node(
        api, namespace, fate=lambda pod: ready_status(pod) if pod_image(pod) != OTHER_IMAGE else None
    ):
        await until_deployment(api, "m", namespace, is_running)

        await change_spec(api, namespace, "/spec/image", OTHER_IMAGE)

        held = await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: (
                obj["status"]["message"]
                == "1 of 1 replica available; rolling out: 1 updated, 1 of the previous spec"
            ),
        )
    assert phase(held) == "Running"
    assert held["status"]["observedGeneration"] == held["metadata"]["generation"] - 1

    async with node(api, namespace):
        await until_deployment(api, "m", namespace, is_running)


async def test_bad_image_of_an_update_is_reported_while_serving(
    suite: Suite, api: Client, namespace: str
) -> None:
    await created(api, namespace)
    bad = pods.waiting("ErrImagePull", "no such tag")
    async with node(
        api, namespace, fate=lambda pod: ready_status(pod) if pod_image(pod) != OTHER_IMAGE else bad
    ):
        await until_deployment(api, "m", namespace, is_running)

        await change_spec(api, namespace, "/spec/image", OTHER_IMAGE)

        received = await until_deployment(
            api, "m", namespace, lambda obj: "cannot be pulled: no such tag" in obj["status"]["message"]
        )
    assert phase(received) == "Running"


async def test_corrected_cause_is_not_reported_while_pod_loads(
    suite: Suite, api: Client, namespace: str
) -> None:
    """The old pod stays until the new one is available, which may take an hour."""
    bad = pods.waiting("ErrImagePull", "no such tag")
    async with node(api, namespace, fate=lambda pod: bad if pod_image(pod) != OTHER_IMAGE else None):
        await created(api, namespace)
        await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Failed")

        await change_spec(api, namespace, "/spec/image", OTHER_IMAGE)

        loading = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Deploying")
        listed, _ = await api.list(PODS, namespace)
    assert len({pod_image(pod) for pod in listed}) == 2
    assert "cannot be pulled" not in loading["status"]["message"]


async def test_foreign_pods_are_of_no_generation_during_revert(
    suite: Suite, api: Client, namespace: str
) -> None:
    """The pods of the revert never get ready, so the pods of somebody else's image keep serving."""
    is_stuck = False

    def fate(pod: Object) -> Object | None:
        return None if is_stuck and pod_image(pod) != OTHER_IMAGE else ready_status(pod)

    async with node(api, namespace, fate=fate):
        await created(api, namespace, scaling={"replicas": 2})
        await until_deployment(api, "m", namespace, lambda obj: is_running(obj, 2))
        is_stuck = True
        suite.components["direct"].stop()
        try:
            image = {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": OTHER_IMAGE}
            changed = await api.json_patch(DEPLOYMENTS, "m", namespace, [image], manager="kubectl-edit")
            await until(api, DEPLOYMENTS, "m", namespace, lambda obj: is_rolled_out(obj, changed))
        finally:
            suite.start("direct")

        reverted = await until_deployment(
            api, "m", namespace, lambda obj: "1 updated, 2 of the previous spec" in obj["status"]["message"]
        )
        assert (phase(reverted), reverted["status"]["observedGeneration"]) == ("Running", 0)
        assert reverted["status"]["endpoint"] == {"service": "m-server", "port": 8000}

        is_stuck = False
        listed, _ = await api.list(PODS, namespace)
        for pod in listed:
            await api.delete(PODS, pod["metadata"]["name"], namespace, uid=pod["metadata"]["uid"])
        running = await until_deployment(api, "m", namespace, lambda obj: is_running(obj, 2))
    assert running["status"]["endpoint"]["model"] == "model-gguf"


def is_rolled_out(obj: Object | None, changed: Object) -> bool:
    """Check whether all pods of a Deployment are of this version of it."""
    status = (obj or {}).get("status") or {}
    counts = {status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")}
    return status.get("observedGeneration") == changed["metadata"]["generation"] and counts == {2}


async def test_paused_deployment_is_reported(suite: Suite, api: Client, namespace: str) -> None:
    await created(api, namespace)
    async with node(api, namespace):
        await until_deployment(api, "m", namespace, is_running)
        suite.plane.kubectl("rollout", "pause", "deployment/m", "-n", namespace)

        await change_spec(api, namespace, "/spec/image", OTHER_IMAGE)
        await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: "kubectl rollout resume deployment/m" in obj["status"]["message"],
        )

        suite.plane.kubectl("rollout", "resume", "deployment/m", "-n", namespace)
        await until_deployment(api, "m", namespace, is_running)


async def test_quota_is_reported_in_the_api_servers_words(suite: Suite, api: Client, namespace: str) -> None:
    await limit(api, namespace, "pods", "0")

    await created(api, namespace)

    failed = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Failed")
    assert "exceeded quota: few" in failed["status"]["message"]


async def test_quota_that_blocks_a_rollback_is_reported(suite: Suite, api: Client, namespace: str) -> None:
    """Kubernetes goes on naming the ReplicaSet of the spec in between."""
    await created(api, namespace, image=OTHER_IMAGE)
    async with node(api, namespace):
        await until_deployment(api, "m", namespace, is_running)
        await change_spec(api, namespace, "/spec/image", CPU["image"])
        await until_deployment(api, "m", namespace, is_running)
        await limit(api, namespace, "pods", "1")

        await change_spec(api, namespace, "/spec/image", OTHER_IMAGE)

        received = await until_deployment(
            api, "m", namespace, lambda obj: "exceeded quota: few" in obj["status"]["message"]
        )
    assert phase(received) == "Running"


async def test_model_runs_under_a_quota_of_cpu_limits(suite: Suite, api: Client, namespace: str) -> None:
    await limit(api, namespace, "limits.cpu", "64")
    await created(api, namespace)
    refused = await until_deployment(
        api, "m", namespace, lambda obj: "limits.cpu" in obj.get("status", {}).get("message", "")
    )

    await change_spec(api, namespace, "/spec/resources/cpuLimit", "8")

    async with node(api, namespace):
        running = await until_deployment(api, "m", namespace, is_running)
    assert phase(refused) != "Running"
    assert reason(running, "Ready") == "DeploymentReady"


async def limit(api: Client, namespace: str, resource: str, amount: str) -> None:
    """By a ResourceQuota."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": namespace},
        "spec": {"hard": {resource: amount}},
    }
    await api.create(QUOTAS, quota, manager="test")
    await until(
        api, QUOTAS, "few", namespace, lambda obj: bool(obj and (obj.get("status") or {}).get("hard"))
    )


@pytest.mark.parametrize("kind", [DEPLOYMENTS, SERVICES], ids=lambda kind: kind.kind)
async def test_direct_reverts_changes_and_recreates_deleted(
    suite: Suite, api: Client, namespace: str, kind: Kind
) -> None:
    await created(api, namespace)
    async with node(api, namespace):
        await until_deployment(api, "m", namespace, is_running)
        name = "m" if kind is DEPLOYMENTS else "m-server"
        before = await api.get(kind, name, namespace)
        edit = (
            {"op": "replace", "path": "/spec/strategy/rollingUpdate/maxUnavailable", "value": 1}
            if kind is DEPLOYMENTS
            else {"op": "replace", "path": "/spec/ports/0/targetPort", "value": 1}
        )

        await api.json_patch(kind, name, namespace, [edit], manager="somebody")
        await until(api, kind, name, namespace, lambda obj: stated(obj) == stated(before))

        await api.delete(kind, name, namespace, uid=before["metadata"]["uid"])
        await until(
            api,
            kind,
            name,
            namespace,
            lambda obj: obj is not None and obj["metadata"]["uid"] != before["metadata"]["uid"],
        )
        await until_deployment(api, "m", namespace, is_running)


async def test_service_finds_its_pods_again(suite: Suite, api: Client, namespace: str) -> None:
    await created(api, namespace)
    before = await until(api, SERVICES, "m-server", namespace, lambda obj: obj is not None)
    assert before is not None

    more = {"op": "add", "path": "/spec/selector/another", "value": "label"}
    await api.json_patch(SERVICES, "m-server", namespace, [more], manager="somebody")

    await until(
        api,
        SERVICES,
        "m-server",
        namespace,
        lambda obj: obj is not None and obj["spec"]["selector"] == before["spec"]["selector"],
    )


@pytest.mark.parametrize("kind", [DEPLOYMENTS, SERVICES], ids=lambda kind: kind.kind)
async def test_object_of_somebody_else_is_left_alone(
    suite: Suite, api: Client, namespace: str, kind: Kind
) -> None:
    """It has none of our labels, so no watch of ours knows it."""
    name = "m" if kind is DEPLOYMENTS else "m-server"
    theirs: dict[str, Any] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "x"}},
    }
    if kind is DEPLOYMENTS:
        template = {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "x", "image": "x"}]},
        }
        theirs["spec"] = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    before = await api.create(kind, theirs, manager="somebody")

    await created(api, namespace)

    received = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict"
    )
    assert f"{kind.kind} '{name}' exists and was not created for this ModelDeployment" in message(
        received, "ResourceCreated"
    )
    after = await api.get(kind, name, namespace)
    assert after["spec"] == before["spec"]


async def test_direct_takes_the_models_that_kaito_refuses(suite: Suite, api: Client, namespace: str) -> None:
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU), manager="test")
    taken = await until_deployment(api, "m", namespace, serves)
    assert taken["status"]["provider"]["selectedReason"] == "no GPU requested → kaito (only CPU provider)"
    two = {**CPU, "scaling": {"replicas": 2}}
    await api.create(MODEL_DEPLOYMENTS, model_deployment("two", namespace, two), manager="test")

    async with node(api, namespace):
        refused = await until_deployment(api, "two", namespace, lambda obj: is_running(obj, 2))

    assert refused["status"]["provider"]["selectedReason"] == (
        "no other provider takes it → direct (a Deployment runs the engine's own server)"
    )


async def test_direct_hands_over_and_takes_over(suite: Suite, api: Client, namespace: str) -> None:
    await created(api, namespace)
    async with node(api, namespace):
        await until_deployment(api, "m", namespace, is_running)

        await change_spec(api, namespace, "/spec/provider/name", "kaito")
        on_kaito = await until_deployment(api, "m", namespace, lambda obj: served_by(obj, "kaito"))
        assert on_kaito["metadata"]["finalizers"] == ["kubefoundry.ai/kaito-provider"]
        listed, _ = await api.list(DEPLOYMENTS, namespace)
        assert listed == []
        assert "selector" not in on_kaito["status"]

        await change_spec(api, namespace, "/spec/provider/name", "direct")
        back = await until_deployment(api, "m", namespace, lambda obj: served_by(obj, "direct"))
        assert back["metadata"]["finalizers"] == ["kubefoundry.ai/direct-provider"]


async def test_additions_of_others_cause_no_write(suite: Suite, api: Client, namespace: str) -> None:
    await created(api, namespace)
    async with node(api, namespace):
        await until_deployment(api, "m", namespace, is_running)
        log = AuditLog(suite)

        label = {"op": "add", "path": "/metadata/labels/somebody", "value": "else"}
        await api.json_patch(DEPLOYMENTS, "m", namespace, [label], manager="somebody")
        await change_spec(api, namespace, "/spec/scaling", {"replicas": 2})
        await until_deployment(api, "m", namespace, lambda obj: is_running(obj, 2))

    # The scaling, and nothing before it.
    assert len(log.writes("provider-direct", namespace, "deployments")) == 1
    assert log.writes("provider-direct", namespace, "services") == []
    assert (await api.get(DEPLOYMENTS, "m", namespace))["metadata"]["labels"]["somebody"] == "else"


def image(deployment: Object) -> str:
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


def pod_image(pod: Object) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def served_by(obj: Object, provider: str) -> bool:
    status = obj["status"]
    kind = {"kaito": "Workspace", "direct": "Deployment"}[provider]
    return phase(obj) == "Running" and status["provider"].get("resourceKind") == kind


def stated(obj: Object | None) -> Any:
    """What the provider states of a Deployment's strategy or a Service's ports."""
    spec = (obj or {}).get("spec") or {}
    return spec.get("strategy") or spec.get("ports")


async def test_restored_model_is_adopted_without_a_restart(suite: Suite, api: Client, namespace: str) -> None:
    """As a backup tool restores it: without owner references, managedFields and status."""
    made = await created(api, namespace)
    async with node(api, namespace):
        await until_deployment(api, "m", namespace, is_running)
        saved = [
            (MODEL_DEPLOYMENTS, made),
            (SERVICES, await api.get(SERVICES, "m-server", namespace)),
            (DEPLOYMENTS, await api.get(DEPLOYMENTS, "m", namespace)),
        ]
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])
        for kind, obj in saved:
            await until(api, kind, obj["metadata"]["name"], namespace, lambda found: found is None)

        for kind, obj in reversed(saved):
            body = as_restored(obj)
            for name in ("clusterIP", "clusterIPs") if kind is SERVICES else ():
                del body["spec"][name]
            await api.create(kind, body, manager="velero")

        serving = await until_deployment(api, "m", namespace, is_running)
    uid = serving["metadata"]["uid"]
    for kind, name in ((DEPLOYMENTS, "m"), (SERVICES, "m-server")):
        adopted = await api.get(kind, name, namespace)
        assert [owner["uid"] for owner in adopted["metadata"]["ownerReferences"]] == [uid]
    deployment = await api.get(DEPLOYMENTS, "m", namespace)
    # Pods restart only if the template changes.
    assert deployment["spec"]["template"] == saved[2][1]["spec"]["template"]
