"""`GET /v1/models`: which models an endpoint says that it serves (the OpenAI API, that all engines speak)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http.client import responses
from typing import Any, Final

import aiohttp

from kubefoundry_sdk.api.foreign_json import Unreadable, decode
from kubefoundry_sdk.api.kinds import SERVICES, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.provider.contract import Endpoint

TIMEOUT: Final = 5.0
"""Seconds for an answer."""
LIMIT: Final = 1024 * 1024
"""Bytes of an answer that are read."""

NAME: Final = 300
"""Characters of a model's name that are read; `model.servedName` has 253 at most."""

Ask = Callable[[str, Endpoint], Awaitable[frozenset[str]]]
"""The names that the endpoint in a namespace lists. Raises NoModels."""


class NoModels(Exception):
    """The endpoint did not list its models; the text says what was asked and what came."""


def through_server(client: Client) -> Ask:
    """By way of the API server, which knows Services by name: for a process outside of the cluster. Whose
    credentials these are needs `get` on `services/proxy`."""

    async def ask(namespace: str, endpoint: Endpoint) -> frozenset[str]:
        path = f"/api/v1/namespaces/{namespace}/services/{endpoint.service}:{endpoint.port}/proxy/v1/models"
        try:
            return listed(await client.read(path, most=LIMIT), path)
        except (ApiError, Unreachable) as error:
            raise NoModels(f"{error}"[:300]) from error

    return ask


def directly(client: Client) -> Ask:
    """At the Service's own address. Needs `get` on `services`.

    Not by its name: a tenant's Service of that name may be of type ExternalName, or lead to addresses that somebody
    wrote by hand, and so to whatever this process can reach and the tenant cannot.
    """

    async def ask(namespace: str, endpoint: Endpoint) -> frozenset[str]:
        return await models(await root(client, namespace, endpoint))

    return ask


async def root(client: Client, namespace: str, endpoint: Endpoint) -> str:
    """The URL at the Service's own address. Raises NoModels."""
    try:
        service = await client.get(SERVICES, endpoint.service, namespace)
    except (ApiError, Unreachable) as error:
        raise NoModels(f"{error}") from error
    return f"http://{address(service)}:{endpoint.port}"


def address(service: Object) -> str:
    """The host part of a URL at which the pods that the Service selects are reached. Raises NoModels."""
    spec = service.get("spec") or {}
    named = f"Service {service['metadata']['namespace']}/{service['metadata']['name']}"
    if spec.get("type") == "ExternalName":
        raise NoModels(f"{named} is of type ExternalName and is not followed")
    if not spec.get("selector"):
        raise NoModels(f"{named} selects no pods and is not followed")
    found = spec.get("clusterIP")
    if not found or found == "None":
        raise NoModels(f"{named} has no address of its own")
    return f"[{found}]" if ":" in found else str(found)


async def models(root: str) -> frozenset[str]:
    """The names that the server at `root` lists. Raises NoModels."""
    url = f"{root}/v1/models"
    status, body = await exchange("GET", url)
    if status != 200:
        # In our words: those of the answer are a tenant's.
        raise NoModels(f"GET {url} answers {status} {responses.get(status, '')}".rstrip())
    return listed(parsed(body, f"GET {url}"), url)


async def exchange(
    method: str, url: str, body: Any = None, *, seconds: float = TIMEOUT
) -> tuple[int, bytearray]:
    """Status and body of a tenant's server's answer: LIMIT bytes at most, within so many seconds. Raises NoModels."""
    try:
        async with (
            aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=seconds),
                # A kilobyte that is compressed may be a megabyte, which LIMIT does not count.
                headers={"Accept-Encoding": "identity"},
                auto_decompress=False,
            ) as session,
            # A redirect could lead anywhere.
            session.request(method, url, json=body, allow_redirects=False) as response,
        ):
            read = bytearray()
            async for chunk in response.content.iter_any():
                read += chunk
                if len(read) > LIMIT:
                    raise NoModels(f"{method} {url} answers more than {LIMIT} bytes")
            return response.status, read
    except TimeoutError as error:
        raise NoModels(f"{method} {url} does not answer within {seconds:.0f} s") from error
    except (aiohttp.ClientError, OSError) as error:
        raise NoModels(f"{method} {url} does not answer: {error}") from error


def parsed(body: bytearray, asked: str) -> Any:
    """The answer to what was asked, as JSON. Raises NoModels."""
    try:
        return decode(body)
    except Unreadable as error:
        raise NoModels(f"{asked} answers no JSON") from error


def listed(answer: Any, asked: str) -> frozenset[str]:
    """The ids in the answer. Raises NoModels where it is no list of models."""
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        raise NoModels(f"GET {asked} answers no list of models")
    return frozenset(
        item["id"][:NAME] for item in data if isinstance(item, dict) and isinstance(item.get("id"), str)
    )
