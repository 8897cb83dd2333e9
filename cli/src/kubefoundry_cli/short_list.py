"""List a few objects with the standard library alone: the import of the client takes longer than the request."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster.answers import items_of, object_of
from kubefoundry_sdk.cluster.credentials import Credentials
from kubefoundry_sdk.cluster.errors import Unreachable
from kubefoundry_sdk.cluster.requests import JSON, path

LIMIT: Final = 500
"""Objects that are requested, as by the client."""

LONGEST: Final = 4 * 2**20
"""Bytes that are read."""

DEADLINE: Final = 30.0
"""Seconds without a byte, as the client's for a call."""


def short_list(
    who: Credentials, kind: Kind, namespace: str | None, *, user_agent: str
) -> list[Object] | None:
    """Return all objects of a kind; None if the client has to list them.

    The client handles everything unusual: proxies, impersonation, warnings, further pages, and errors.

    Raises:
        Unreachable: The API server does not answer in time.
    """
    if who.proxy or who.user or who.tls_server_name:
        return None
    url = path(kind, namespace)
    address = urlsplit(who.server)
    connection = (
        HTTPConnection(str(address.hostname), address.port, timeout=DEADLINE)
        if who.tls is None
        else HTTPSConnection(str(address.hostname), address.port, timeout=DEADLINE, context=who.tls)
    )
    try:
        token = who.token()
        authorization = {"Authorization": f"Bearer {token}"} if token else {}
        headers = {"Accept": JSON, "User-Agent": user_agent, **authorization}
        connection.request("GET", f"{address.path}{url}?limit={LIMIT}", headers=headers)
        response = connection.getresponse()
        if response.status != 200 or "Warning" in response.headers:
            return None
        raw = response.read(LONGEST)
        page = object_of(raw, f"GET {url}")
        items = items_of(page)
        return None if page["metadata"].get("continue") else items
    except TimeoutError as error:
        raise Unreachable(f"GET {url}: {error}") from error
    except (OSError, HTTPException, ValueError, Unreachable):
        return None
    finally:
        connection.close()
