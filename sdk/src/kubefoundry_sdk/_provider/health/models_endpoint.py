"""`GET /v1/models`: the models that an endpoint lists (the OpenAI API, which all engines speak)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from kubefoundry_sdk._api.foreign_json import Unreadable, decode
from kubefoundry_sdk._api.kinds import SERVICES, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.service_proxy import Reply, ServiceProxy, status_text
from kubefoundry_sdk._cluster.transport import DEADLINE
from kubefoundry_sdk._provider.contract import Endpoint
from kubefoundry_sdk._runtime import tenant_http

TIMEOUT: Final = 5.0
"""Seconds to wait for an answer."""
NAME: Final = 300
"""Characters of a model's name that are read; `model.servedName` has at most 253."""

KEY_REQUIRED: Final = (401, 403)
"""Status codes of a server that answers only with a key."""

Ask = Callable[[str, Endpoint], Awaitable[frozenset[str]]]
"""The names that the endpoint in a namespace lists. Raises NoModels."""


class NoModels(Exception):
    """The endpoint did not list its models; the text names the request and the response."""


class KeyRequired(NoModels):
    """A server answers at the endpoint, but not without a key (`--api-key` of an engine, a proxy)."""


def through_server(client: Client) -> Ask:
    """Return a function that sends the request through the API server, for a process outside the cluster.

    The API server resolves the Service's name. Needs `get` on `services/proxy`.
    """

    async def ask(namespace: str, endpoint: Endpoint) -> frozenset[str]:
        service = ServiceProxy(client, namespace, f"{endpoint.service}:{endpoint.port}")
        reply = await proxied(service, "/v1/models", seconds=DEADLINE)
        url = f"{service.root}/v1/models"
        return listed(accepted(reply.status, reply.body, url), url)

    return ask


def directly(client: Client) -> Ask:
    """Return a function that sends the request to the Service's cluster IP. Needs `get` on `services`.

    The function does not resolve the Service's name. A tenant's Service of that name may be of type ExternalName or
    have addresses that somebody wrote by hand, and would lead to a server that this process can reach and the tenant
    cannot.
    """

    async def ask(namespace: str, endpoint: Endpoint) -> frozenset[str]:
        return await models(await root(client, namespace, endpoint))

    return ask


async def root(client: Client, namespace: str, endpoint: Endpoint) -> str:
    """Return the base URL at the Service's own address. Raise NoModels."""
    try:
        service = await client.get(SERVICES, endpoint.service, namespace)
    except (ApiError, Unreachable) as error:
        raise NoModels(f"{error}") from error
    return f"http://{address(service)}:{endpoint.port}"


def address(service: Object) -> str:
    """Return the host part of a URL that reaches the pods that the Service selects. Raise NoModels."""
    spec = service.get("spec") or {}
    named = f"Service {service['metadata']['namespace']}/{service['metadata']['name']}"
    if spec.get("type") == "ExternalName":
        raise NoModels(f"{named} is of type ExternalName and is not followed")
    if not spec.get("selector"):
        raise NoModels(f"{named} selects no pods and is not followed")
    cluster_ip = spec.get("clusterIP")
    if not cluster_ip or cluster_ip == "None":
        raise NoModels(f"{named} has no cluster IP")
    return f"[{cluster_ip}]" if ":" in cluster_ip else str(cluster_ip)


async def models(root: str) -> frozenset[str]:
    """Return the names that the server at `root` lists. Raise NoModels."""
    url = f"{root}/v1/models"
    status, body = await exchange("GET", url)
    return listed(accepted(status, body, url), url)


async def proxied(
    service: ServiceProxy, path: str, body: Mapping[str, Any] | None = None, *, seconds: float
) -> Reply:
    """Send a request to a tenant's server through the API server. Raise NoModels, also if the API server refuses."""
    try:
        reply = await service.exchange(path, body, seconds=seconds)
        refusal = await service.refuses(reply, posts=body is not None)
    except (ApiError, Unreachable) as error:
        raise NoModels(f"{error}"[:300]) from error
    if refusal:
        method = "GET" if body is None else "POST"
        raise NoModels(f"{method} {service.root}{path}: {refusal}"[:300])
    return reply


def accepted(status: int, body: bytearray, url: str) -> Any:
    """Return the JSON of a list of models. Raise NoModels."""
    if status != 200:
        # The message does not quote the response, because a tenant controls its text.
        raise (KeyRequired if status in KEY_REQUIRED else NoModels)(
            f"GET {url} answers {status_text(status)}"
        )
    return parsed(body, f"GET {url}")


async def exchange(
    method: str, url: str, body: Any = None, *, seconds: float = TIMEOUT
) -> tuple[int, bytearray]:
    """Send a request to a tenant's server, and return status and body of the response. Raise NoModels."""
    try:
        reply = await tenant_http.exchange(method, url, body, seconds=seconds)
    except tenant_http.NoAnswer as error:
        raise NoModels(f"{method} {url} {error}") from error
    return reply.status, reply.body


def parsed(body: bytearray, request: str) -> Any:
    """Return the response as JSON. Raise NoModels."""
    try:
        return decode(body)
    except Unreadable as error:
        raise NoModels(f"{request} does not answer with JSON") from error


def listed(answer: Any, request: str) -> frozenset[str]:
    """Return the ids in the response. Raise NoModels if it is not a list of models."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        raise NoModels(f"GET {request} does not answer with a list of models")
    return frozenset(
        item["id"][:NAME] for item in data if isinstance(item, dict) and isinstance(item.get("id"), str)
    )
