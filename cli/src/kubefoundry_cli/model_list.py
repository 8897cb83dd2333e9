"""List models with the standard library alone: the import of the client takes longer than the request."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLContext
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

from kubefoundry_cli import cluster
from kubefoundry_cli.cluster import MANAGER, Target
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import Unreachable
from kubefoundry_sdk._cluster.requests import JSON, path
from kubefoundry_sdk._cluster.responses import items_of, object_of

LIMIT: Final = 500
"""Maximum number of objects per page, as in the client."""

LONGEST: Final = 4 * 2**20
"""Maximum size of a page in bytes. The client lists longer pages."""

DEADLINE: Final = 30.0
"""Timeout in seconds while the server sends nothing, as in the client."""


def list_models(target: Target, namespace: str | None) -> list[Object]:
    """Return all ModelDeployments.

    Args:
        target: The cluster.
        namespace: The namespace, None for all.

    Raises:
        Failure: They cannot be listed.
    """
    who, _ = cluster.identity(target)
    try:
        models = _quick_list(who, namespace)
    except Unreachable as error:
        raise cluster.cannot_list(error, namespace) from error
    return cluster.run(_list_by_client(target, namespace)) if models is None else models


async def _list_by_client(target: Target, namespace: str | None) -> list[Object]:
    async with cluster.session(target) as session:
        models, _ = await session.models(namespace)
        return models


def _connection(address: SplitResult, tls: SSLContext | None) -> HTTPConnection:
    host = str(address.hostname)
    if tls is None:
        return HTTPConnection(host, address.port, timeout=DEADLINE)
    return HTTPSConnection(host, address.port, timeout=DEADLINE, context=tls)


def _headers(token: str | None) -> dict[str, str]:
    authorization = {"Authorization": f"Bearer {token}"} if token else {}
    return {"Accept": JSON, "User-Agent": MANAGER, **authorization}


def _quick_list(who: Credentials, namespace: str | None) -> list[Object] | None:
    """Return all models; None if the client has to list them.

    The client handles everything unusual: proxies, impersonation, warnings, long pages, and errors.

    Raises:
        Unreachable: The API server does not answer in time.
    """
    if who.proxy or who.user or who.tls_server_name:
        return None
    url = path(MODEL_DEPLOYMENTS, namespace)
    address = urlsplit(who.server)
    connection = _connection(address, who.tls)
    models, following = list[Object](), ""
    try:
        headers = _headers(who.token())
        while True:
            connection.request("GET", f"{address.path}{url}?limit={LIMIT}{following}", headers=headers)
            response = connection.getresponse()
            if response.status != 200 or "Warning" in response.headers:
                return None
            page = object_of(response.read(LONGEST), f"GET {url}")
            models += items_of(page)
            if not (further := page["metadata"].get("continue")):
                return models
            following = f"&continue={quote(str(further), safe='')}"
    except TimeoutError as error:
        raise Unreachable(f"GET {url}: {error}") from error
    except (OSError, HTTPException, ValueError, Unreachable):
        return None
    finally:
        connection.close()
