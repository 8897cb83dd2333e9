"""Defines a provider's service: a process outside the server that the provider calls.

The operator imports the names that both sides share. Its input to a command describes each service as an object with
the keys of `parse`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from llamastack_providers import layout
from llamastack_providers.errors import Code, Failure

SIDECAR: Final = "Sidecar"
DEPLOYMENT: Final = "Deployment"
UNIX_SOCKET: Final = "UnixSocket"
TCP: Final = "TCP"
TRANSPORTS: Final = {"unix": UNIX_SOCKET, "tcp": TCP}
"""The transport of a custom resource by its name in an image's metadata."""
START_SECONDS: Final = 60
"""Seconds that a service has to start by default."""
HIGHEST_PORT: Final = 65535
CONTAINER: Final = "provider-"
"""Begins the name of the container with a service."""
HEALTH_PATH_PATTERN: Final = "^/[!-~]*$"
"""The path of a request, in which any other character is invalid."""


@dataclass(frozen=True, slots=True)
class Health:
    """The listener that reports a service's health."""

    port: int
    path: str


@dataclass(frozen=True, slots=True)
class Service:
    """The service of one provider.

    Attributes:
        mode: Where it runs: `Sidecar`, in a container of the server's pod, or `Deployment`, in pods of its own.
        transport: `UnixSocket` or `TCP`.
        address: The value of its variable (see `url_variable`). Empty if the command does not need it.
        required: Whether the provider cannot work without it.
        start_seconds: Seconds that it has to start.
        health: Its health listener in the server's pod, None if there is none.
        token_file: The file with the token for requests, empty if there is none.
    """

    mode: str
    transport: str
    address: str = ""
    required: bool = True
    start_seconds: int = START_SECONDS
    health: Health | None = None
    token_file: str = ""


def container(provider_id: str) -> str:
    """Return the name of the container that runs the service in the server's pod."""
    return f"{CONTAINER}{provider_id}"


def url_variable(provider_id: str) -> str:
    """Return the server's environment variable with the address of the service.

    Ids have no underscore, so no two ids share a variable.
    """
    return f"KUBEFOUNDRY_PROVIDER_{provider_id.upper().replace('-', '_')}_URL"


def folder(provider_id: str) -> str:
    """Return the folder of the server's container with the service's socket."""
    return f"{layout.SERVICES}/{provider_id}"


def token_folder(provider_id: str) -> str:
    """Return the folder with the service's token, in its own container as in the server's."""
    return f"{layout.TOKENS}/{provider_id}"


def token_file(provider_id: str) -> str:
    """Return the path of the service's token, in its own container as in the server's."""
    return f"{token_folder(provider_id)}/token"


def parse(value: Any) -> Service | None:
    """Return the service of the operator's input, None if the provider has none.

    `mode` and `transport` are required. `address`, `required`, `startSeconds`, `health` (`port`, `path`) and
    `tokenFile` are optional.

    Raises:
        Failure: BadCall.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Failure(Code.BadCall, "service must be an object")
    required, seconds = value.get("required", True), value.get("startSeconds", START_SECONDS)
    if not isinstance(required, bool):
        raise Failure(Code.BadCall, f"service.required must be true or false, not {required!r}")
    return Service(
        mode=_one_of(value, "mode", (SIDECAR, DEPLOYMENT)),
        transport=_one_of(value, "transport", tuple(TRANSPORTS.values())),
        address=_text(value, "address"),
        required=required,
        start_seconds=_number(seconds, "startSeconds", 3600),
        health=_health(value.get("health")),
        token_file=_text(value, "tokenFile"),
    )


def _health(value: Any) -> Health | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Failure(Code.BadCall, "service.health must be an object")
    path = value.get("path")
    if not isinstance(path, str) or not re.fullmatch(HEALTH_PATH_PATTERN, path):
        reason = f"service.health.path must be / and printable ASCII without spaces, not {path!r}"
        raise Failure(Code.BadCall, reason)
    return Health(_number(value.get("port"), "health.port", HIGHEST_PORT), path)


def _one_of(value: Mapping[str, Any], key: str, allowed: tuple[str, ...]) -> str:
    chosen = value.get(key)
    if not isinstance(chosen, str) or chosen not in allowed:
        raise Failure(Code.BadCall, f"service.{key} must be {' or '.join(allowed)}, not {chosen!r}")
    return chosen


def _text(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key, "")
    if not isinstance(text, str):
        raise Failure(Code.BadCall, f"service.{key} must be a text, not {text!r}")
    return text


def _number(number: Any, key: str, most: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
        raise Failure(Code.BadCall, f"service.{key} must be a number from 1 to {most}, not {number!r}")
    return number
