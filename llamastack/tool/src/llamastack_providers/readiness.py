"""Waits in the server's container until the service of a provider is ready."""

from __future__ import annotations

import http.client
import socket
import time
from typing import Final
from urllib.parse import urlsplit

from llamastack_providers import service
from llamastack_providers.errors import Code, Failure
from llamastack_providers.layout import Layout
from llamastack_providers.service import Service

_EVERY: Final = 0.2
"""Seconds between two attempts."""
_ANSWER_SECONDS: Final = 2
"""Seconds for one answer. It bounds how much a wait exceeds its deadline."""
_HOST: Final = "127.0.0.1"


def wait(provider_id: str, item: Service, deadline: float, places: Layout) -> None:
    """Wait until the service of a provider is ready.

    Args:
        provider_id: The provider.
        item: Its service.
        deadline: The end of its time to start, in seconds of the monotonic clock.
        places: Paths of the container.

    Raises:
        Failure: ServiceNotReached.
    """
    while problem := _problem(item, places):
        if time.monotonic() >= deadline:
            reason = (
                f"{_name(provider_id, item)} did not answer at {target(item)} "
                f"within {item.start_seconds} s: {problem}"
            )
            raise Failure(Code.ServiceNotReached, reason, provider_id=provider_id)
        time.sleep(_EVERY)


def _name(provider_id: str, item: Service) -> str:
    container = f"container {service.container(provider_id)}"
    return container if item.mode == service.SIDECAR else f"{container} of the service's own pods"


def target(item: Service) -> str:
    """Return the address that shows whether the service is ready: of its health, or else of its traffic."""
    return f"http://{_HOST}:{item.health.port}{item.health.path}" if item.health else item.address


def _problem(item: Service, places: Layout) -> str:
    """Return why the service is not ready, empty if it is."""
    try:
        if item.health is None:
            _connect(item, places)
            return ""
        # Not urllib, which would use the proxy of the environment.
        connection = http.client.HTTPConnection(_HOST, item.health.port, timeout=_ANSWER_SECONDS)
        try:
            connection.request("GET", item.health.path)
            status = connection.getresponse().status
        finally:
            connection.close()
    except (http.client.HTTPException, ValueError) as error:
        # Its text may quote the service, which may know secrets.
        return type(error).__name__
    except OSError as error:
        return str(error) or type(error).__name__
    # The kubelet accepts the same answers.
    return "" if http.HTTPStatus.OK <= status < http.HTTPStatus.BAD_REQUEST else f"it answered {status}"


def _connect(item: Service, places: Layout) -> None:
    address = urlsplit(item.address)
    if item.transport == service.UNIX_SOCKET:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(_ANSWER_SECONDS)
            client.connect(str(places.at(address.path)))
    else:
        socket.create_connection((address.hostname, address.port or 80), _ANSWER_SECONDS).close()
