"""ModelDeployments whose pods really run, and calls to their endpoints by way of the API server."""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_nodes.llama import image
from kubefoundry_nodes.llama.hub import Hub
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PODS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.service_proxy import ServiceProxy
from support.deployments import model_deployment
from support.waiting import phase, until_deployment

REPOSITORY: Final = "test/tiny"
NAME: Final = "m"
SERVED: Final = "tiny"
VERIFY: Final = "kubefoundry.ai/verify-endpoint"


def tiny(namespace: str, hub: Hub, *, drain: int = 0, verify: str = "true", **spec: Any) -> Object:
    """The model of the hub on direct, whose pods end at once. Keywords are fields of its spec."""
    overrides = {"drainSeconds": drain, **spec.pop("overrides", {})}
    wanted = {
        "model": {"id": f"{REPOSITORY}/{image.MODEL}", "servedName": SERVED},
        "engine": {
            "type": "llamacpp",
            "contextLength": 512,
            **spec.pop("engine", {}),
        },
        "resources": {"cpu": "1", "memory": "1Gi", **spec.pop("resources", {})},
        "provider": {"name": "direct", "overrides": overrides},
        "env": [{"name": "HF_ENDPOINT", "value": hub.url}],
        **spec,
    }
    return model_deployment(NAME, namespace, wanted, annotations={VERIFY: verify})


async def running(api: Client, namespace: str, replicas: int = 1) -> Object:
    """Once its newest generation serves with that many replicas, and no pod of an earlier one."""

    def well(obj: Object) -> bool:
        status = obj.get("status") or {}
        return (
            phase(obj) == "Running"
            and status["observedGeneration"] == obj["metadata"]["generation"]
            and status["replicas"] == {"desired": replicas, "ready": replicas, "available": replicas}
            and "rolling out" not in status["message"]
        )

    return await until_deployment(api, NAME, namespace, well)


async def failed(api: Client, namespace: str, words: str) -> Object:
    """Once it has failed and says so with these words."""
    return await until_deployment(
        api, NAME, namespace, lambda obj: phase(obj) == "Failed" and words in obj["status"]["message"]
    )


async def created(api: Client, body: Object) -> Object:
    return await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def pods(api: Client, namespace: str) -> list[Object]:
    """Those that are not about to end."""
    items, _ = await api.list(PODS, namespace)
    return [item for item in items if not item["metadata"].get("deletionTimestamp")]


def server(api: Client, namespace: str) -> ServiceProxy:
    """Return the model's Service behind the API server's proxy."""
    return ServiceProxy(api, namespace, f"{NAME}-server:8000")


async def words(api: Client, namespace: str, **asked: Any) -> str:
    """The answer to a chat request, streamed."""
    messages = [{"role": "user", "content": "ping"}]
    body = {"model": SERVED, "messages": messages, "stream": True, **asked}
    lines = [line async for line in server(api, namespace).lines("/v1/chat/completions", body)]
    return b"".join(lines).decode()
