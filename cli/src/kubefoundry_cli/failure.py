"""Report the failure of a command: one line on stderr, and an exit code for the kind of failure."""

from __future__ import annotations

import sys
from enum import IntEnum

import click

from kubefoundry_cli.hint import hint
from kubefoundry_cli.output import printable
from kubefoundry_cli.permission import remedy
from kubefoundry_sdk._api.names import GROUP
from kubefoundry_sdk._cluster.errors import NO_REASON, UNROUTED, ApiError, ForeignAnswer, NoToken, Unreachable


class Exit(IntEnum):
    """Exit codes. For an unknown option, click itself exits with USAGE."""

    YES = 0
    NO = 1
    USAGE = 2
    CHANGED = 3
    NO_CLUSTER = 4
    FORBIDDEN = 5
    TIMEOUT = 6


class Failure(click.ClickException):
    """The failure of a command. The message has one line: what happened, to which object, why, and what to do."""

    def __init__(self, message: str, code: Exit = Exit.NO) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]

    def show(self, file: object = None) -> None:
        """Print the message to stderr."""
        print(f"error: {printable(self.message)}", file=sys.stderr)


class Missing(Failure):
    """The object that the command is about does not exist."""


def not_served(error: ApiError) -> bool:
    """Check whether the API server does not serve the kind at all: a 404 that names no object."""
    if error.reason == NO_REASON:
        return error.not_found and error.message.startswith(UNROUTED)
    return error.not_found and not error.details.name


def not_installed(error: ApiError) -> bool:
    """Check whether the API server serves none of our kinds."""
    return not_served(error) and f"/apis/{GROUP}/" in str(error)


def of(error: Exception, doing: str) -> Failure:
    """Return the failure for an error of the API server.

    Args:
        error: The error.
        doing: The failed action after "cannot", for example `read ModelDeployment 'x'`.
    """
    if isinstance(error, Unreachable):
        return Failure(f"cannot {doing}: {_without_answer(error)}", Exit.NO_CLUSTER)
    if not isinstance(error, ApiError):
        return Failure(f"cannot {doing}: {error}")
    if not_installed(error):
        return Failure(
            f"cannot {doing}: KubeFoundry is not installed on this cluster; {hint('controller install')}",
            Exit.NO_CLUSTER,
        )
    if not_served(error):
        return Failure(f"cannot {doing}: the API server does not serve that kind", Exit.NO_CLUSTER)
    if error.code == 401:
        return Failure(
            f"cannot {doing}: the API server does not accept the credentials; log in again", Exit.NO_CLUSTER
        )
    if error.code == 403:
        todo = remedy(error.message)
        return Failure(f"cannot {doing}: {error.message}{f'; {todo}' if todo else ''}", Exit.FORBIDDEN)
    if error.conflict:
        return Failure(
            f"cannot {doing}: it has changed since it was read; look at it and try again", Exit.CHANGED
        )
    return Failure(f"cannot {doing}: {error.message}")


def _without_answer(error: Unreachable) -> str:
    """Return why there is no answer of the API server, and what to do."""
    if isinstance(error, NoToken):
        return str(error)
    # Sent and not answered. The text begins with the method, and a refused connection is no TimeoutError.
    is_unanswered = isinstance(error.__cause__, TimeoutError) or getattr(error, "code", 0) >= 500
    is_unsure = is_unanswered and not str(error).startswith("GET ")
    unsure = "; it may have been done nevertheless: look before you repeat it" if is_unsure else ""
    if isinstance(error, ForeignAnswer):
        return (
            f"something other than the API server has answered ({error}); check the server and the proxy-url of the "
            f"kubeconfig, and HTTPS_PROXY{unsure}"
        )
    return f"the API server does not answer ({error}){unsure}"
