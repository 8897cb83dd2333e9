"""The flags that every process has, each with an environment variable `KUBEFOUNDRY_…` (contract §6)."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

from kubefoundry_sdk._api import images
from kubefoundry_sdk._api.duration import parse
from kubefoundry_sdk._api.names import SYSTEM_NAMESPACE
from kubefoundry_sdk._cluster.logs import LEVELS

_VARIABLES: Final[ContextVar[Mapping[str, str]]] = ContextVar("variables", default=os.environ)


@contextmanager
def without_variables() -> Iterator[None]:
    """Add flags inside the block without defaults from the environment.

    The flags belong to another process, to which this process's environment does not apply.
    """
    token = _VARIABLES.set({})
    try:
        yield
    finally:
        _VARIABLES.reset(token)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with one line and exit code 1, as for every other failed start."""
        sys.stderr.write(f"{self.prog}: {message}; see {self.prog} --help\n")
        raise SystemExit(1)


def parser(program: str, description: str) -> argparse.ArgumentParser:
    """Return a parser with the flags of every process."""
    flag_parser = _Parser(prog=program, description=description)
    flag(
        flag_parser,
        "--kubeconfig",
        "kubeconfig file; default: the ServiceAccount, otherwise as kubectl finds it",
    )
    flag(
        flag_parser,
        "--namespace",
        "namespace of the component and of its Lease; default: that of the ServiceAccount, otherwise "
        f"{SYSTEM_NAMESPACE}",
    )
    flag(flag_parser, "--log-format", "text or json", default="text", choices=("text", "json"))
    flag(flag_parser, "--log-level", f"the least level: {', '.join(LEVELS)}", default="info", choices=LEVELS)
    flag(flag_parser, "--metrics-port", "port for /metrics, 0 to disable", default=8080, read=_port)
    flag(
        flag_parser, "--health-port", "port for /healthz and /readyz, 0 to disable", default=8081, read=_port
    )
    switch(
        flag_parser,
        "--leader-elect",
        "reconcile only while holding the component's Lease: true or false",
    )
    flag(
        flag_parser,
        "--identity",
        "holder identity for the Lease; default: POD_UID, otherwise host name and process id",
    )
    flag(flag_parser, "--workers", "maximum number of concurrent reconciles", default=8, read=_positive)
    flag(
        flag_parser,
        "--qps",
        "maximum requests per second to the API server, 0 for no client-side limit",
        default=0.0,
        read=float,
    )
    return flag_parser


FINALIZER_TIMEOUT: Final = 300.0
"""Seconds from deletionTimestamp on that a clean-up upstream may take (contract §4.3)."""


def finalizer_timeout(to: argparse.ArgumentParser) -> None:
    """Add the flag of components that remove finalizers.

    Providers remove their own finalizers, and core those of providers that are gone.
    """
    flag(
        to,
        "--finalizer-timeout",
        "time from a ModelDeployment's deletion until its finalizer is removed even if something is left behind: "
        "90s, 5m or a number of seconds",
        default=f"{FINALIZER_TIMEOUT:g}s",
        read=duration,
    )


HEARTBEAT_TIMEOUT: Final = 180.0
"""Seconds of silence after which a provider counts as lost (contract §5)."""


def heartbeat_timeout(to: argparse.ArgumentParser) -> None:
    """Add the flag of components that send or check heartbeats; it has to be the same for all of them."""
    flag(
        to,
        "--heartbeat-timeout",
        "time without a heartbeat after which a provider counts as lost: 90s, 5m or a number of seconds; providers "
        "send three heartbeats in that time",
        default=f"{HEARTBEAT_TIMEOUT:g}s",
        read=duration,
    )


def flag(
    to: argparse.ArgumentParser,
    name: str,
    text: str,
    *,
    default: Any = None,
    read: Callable[[str], Any] = str,
    **more: Any,
) -> None:
    """Add a flag whose default may come from the environment: `--health-port` reads KUBEFOUNDRY_HEALTH_PORT."""
    variable = "KUBEFOUNDRY_" + name.removeprefix("--").replace("-", "_").upper()
    value = _VARIABLES.get().get(variable)
    note = "" if default is None else f", default {default}"
    # argparse passes a string default through `type`, so a bad variable is refused like a bad flag.
    to.add_argument(name, help=f"{text} ({variable}{note})", default=value or default, type=read, **more)


def switch(to: argparse.ArgumentParser, name: str, text: str) -> None:
    """Add a flag that is false by default, and true without a value."""
    flag(to, name, text, default=False, read=boolean, nargs="?", const=True)


def mirror(to: argparse.ArgumentParser) -> None:
    """Add the flag `--mirror`, the registry with copies of the default images, for `pod.in_registry`."""
    flag(
        to,
        "--mirror",
        "registry with copies of the default images, for example registry.example.com/kubefoundry",
        default="",
        read=_registry,
    )


def _registry(text: str) -> str:
    if text and not re.fullmatch(images.REGISTRY, text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a registry such as registry.example.com/kubefoundry"
        )
    return text


def boolean(text: str) -> bool:
    """Return the value of `true` or `false`, as Kubernetes components write them."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def duration(text: str) -> float:
    """Return the seconds of a duration such as `90s`, or of a number of seconds, for `flag(..., read=duration)`.

    Raises:
        argparse.ArgumentTypeError: The text is neither.
    """
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
