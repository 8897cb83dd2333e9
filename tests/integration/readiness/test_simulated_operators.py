"""The simulated upstream operators on a real API server behave as a provider has to expect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_local.suite import Suite, end
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.refusing_webhook import refusing
from support.suites import install_crd
from support.upstream import PROVIDERS, standin
from support.waiting import SECONDS, until

pytestmark = pytest.mark.integration

WORKSPACES = Kind("kaito.sh", "v1beta1", "workspaces", "Workspace")
GRAPHS = Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment")
RAY_SERVICES = Kind("ray.io", "v1", "rayservices", "RayService")
PROVIDER = "provider-of-the-test"


def workspace(namespace: str) -> Object:
    return {
        "apiVersion": WORKSPACES.api_version,
        "kind": "Workspace",
        "metadata": {"name": "m", "namespace": namespace},
        "resource": {"labelSelector": {"matchLabels": {"kubernetes.io/os": "linux"}}},
        "inference": {"template": {"spec": {"containers": [{"name": "model", "image": "x"}]}}},
    }


def graph(namespace: str) -> Object:
    parts = {"Frontend": "frontend", "Worker": "worker"}
    services = {
        name: {"componentType": type_, "replicas": 1, "extraPodSpec": {"mainContainer": {"image": "x"}}}
        for name, type_ in parts.items()
    }
    return {
        "apiVersion": GRAPHS.api_version,
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "m", "namespace": namespace},
        "spec": {"backendFramework": "vllm", "services": services},
    }


def ray_service(namespace: str, *, replicas: int = 1, model: str = "llama") -> Object:
    container = {"name": "ray", "image": "x"}
    worker = {
        "groupName": "gpu",
        "replicas": replicas,
        "minReplicas": 0,
        "maxReplicas": 8,
        "rayStartParams": {},
        "template": {"spec": {"containers": [container]}},
    }
    return {
        "apiVersion": RAY_SERVICES.api_version,
        "kind": "RayService",
        "metadata": {"name": "m", "namespace": namespace},
        "spec": {
            "serveConfigV2": "applications: [{name: llm, args: {llm_configs: "
            f"[{{model_loading_config: {{model_id: {model}}}}}]}}}}]",
            "rayClusterConfig": {
                "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [container]}}},
                "workerGroupSpecs": [worker],
            },
        },
    }


@pytest.fixture(scope="module")
def operators(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All three, on the stand-in CRDs."""
    suite = Suite(cluster, tmp_path_factory.mktemp("operators"))
    documents = [standin(provider).document for provider in PROVIDERS]
    crds = [document["metadata"]["name"] for document in documents]
    for document in documents:
        install_crd(suite, document)
    process = suite.simulate(*PROVIDERS)
    yield
    cluster.kubectl("delete", "workspaces,dynamographdeployments,rayservices", "--all", "-A")
    assert end(process) == 0
    cluster.kubectl("delete", "crd", *crds)


def ready(object_: Object | None) -> bool:
    conditions = ((object_ or {}).get("status") or {}).get("conditions") or []
    return any(
        item["type"] in ("Ready", "InferenceReady") and item["status"] == "True" for item in conditions
    )


async def test_kuberay_takes_the_worker_groups_over(operators: None, api: Client, namespace: str) -> None:
    await api.apply(RAY_SERVICES, ray_service(namespace), manager=PROVIDER)

    live = await until(api, RAY_SERVICES, "m", namespace, ready)

    assert live is not None
    assert live["metadata"]["generation"] == 2
    assert live["metadata"]["finalizers"] == ["ray.io/rayservice-finalizer"]
    assert live["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["scaleStrategy"] == {}
    edited = ray_service(namespace, model="other", replicas=2)
    with pytest.raises(ApiError) as refused:
        await api.apply(RAY_SERVICES, edited, manager=PROVIDER, force=False)
    assert refused.value.conflict
    assert "workerGroupSpecs" in refused.value.message
    await api.apply(RAY_SERVICES, edited, manager=PROVIDER)
    await until(api, RAY_SERVICES, "m", namespace, lambda it: "LLMServer:other" in str(it))


async def test_kaito_keeps_the_pods_of_an_edited_template(
    operators: None, api: Client, namespace: str
) -> None:
    await api.apply(WORKSPACES, workspace(namespace), manager=PROVIDER)
    await until(api, WORKSPACES, "m", namespace, ready)

    edited = workspace(namespace)
    edited["inference"]["template"]["spec"]["containers"][0]["image"] = "y"
    await api.apply(WORKSPACES, edited, manager=PROVIDER, force=False)
    live = await until(
        api,
        WORKSPACES,
        "m",
        namespace,
        lambda it: it is not None and it["metadata"]["annotations"]["workspace.kaito.io/revision"] == "2",
    )

    assert live is not None
    assert live["metadata"]["generation"] == 3
    assert ready(live)


EVERY = pytest.mark.parametrize(
    ("kind", "make", "case", "shows"),
    [
        pytest.param(WORKSPACES, workspace, "image-pull", "ImagePullError", id="kaito"),
        pytest.param(GRAPHS, graph, "failed", "failed_to_reconcile_the_resources", id="dynamo"),
        pytest.param(RAY_SERVICES, ray_service, "deploy-failed", "DEPLOY_FAILED", id="kuberay"),
    ],
)
Make = Callable[[str], Object]


@EVERY
async def test_failure_comes_on_demand_and_goes(
    operators: None, api: Client, namespace: str, kind: Kind, make: Make, case: str, shows: str
) -> None:
    failing = make(namespace)
    failing["metadata"]["annotations"] = {"simulator.kubefoundry.ai/fail": case}
    await api.apply(kind, failing, manager=PROVIDER)
    failed = await until(api, kind, "m", namespace, lambda it: shows in str((it or {}).get("status")))

    await api.apply(kind, make(namespace), manager=PROVIDER)

    assert not ready(failed)
    await until(api, kind, "m", namespace, ready)


@EVERY
async def test_operator_repeats_refused_writes(
    operators: None, api: Client, namespace: str, kind: Kind, make: Make, case: str, shows: str
) -> None:
    made, example = make(namespace), make(namespace)
    made["metadata"]["annotations"] = {"simulator.kubefoundry.ai/fail": case}
    example["metadata"]["name"] = "example"

    async with refused_once(api, kind, example, marker='"finalizers"'):
        await api.apply(kind, made, manager=PROVIDER)
    adopted = await until(api, kind, "m", namespace, lambda it: "finalizers" in (it or {})["metadata"])
    await api.apply(kind, make(namespace), manager=PROVIDER)
    await until(api, kind, "m", namespace, ready)
    async with refused_once(api, kind, example, marker=shows):
        await api.apply(kind, made, manager=PROVIDER)
    await until(api, kind, "m", namespace, lambda it: shows in str((it or {}).get("status")))
    async with refused_once(api, kind, example, marker='"deletionTimestamp"'):
        await api.delete(kind, "m", namespace, uid=(adopted or {})["metadata"]["uid"])
    await until(api, kind, "m", namespace, lambda it: it is None)


@asynccontextmanager
async def refused_once(api: Client, kind: Kind, example: Object, *, marker: str) -> AsyncIterator[None]:
    """Refuse updates with the marker until the end of the block, and at least one."""
    refusal = refusing(
        api,
        kind,
        example["metadata"]["namespace"],
        marker=marker,
        code=403,
        words="not now",
        example=example,
        operations=("UPDATE",),
    )
    async with refusal as refused, asyncio.timeout(SECONDS):
        yield
        await refused.wait()
