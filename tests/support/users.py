"""Users of a namespace: ServiceAccounts with a token, their roles, and what the API server answers them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import yaml

from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_local.suite import PROBE
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.waiting import SECONDS


def new_user(plane: ControlPlane, namespace: str, name: str, folder: Path) -> Path:
    """Create a ServiceAccount, and return a kubeconfig with its token."""
    plane.kubectl("create", "serviceaccount", name, "-n", namespace)
    return account_kubeconfig(plane, namespace, name, folder)


def account_kubeconfig(plane: ControlPlane, namespace: str, name: str, folder: Path) -> Path:
    """Return a kubeconfig with a token of a ServiceAccount."""
    config = yaml.safe_load(plane.kubeconfig.read_text())
    [user] = config["users"]
    user["user"] = {"token": plane.token(namespace, name)}
    kubeconfig = folder / f"{namespace}-{name}"
    kubeconfig.write_text(yaml.safe_dump(config))
    return kubeconfig


def user_name(namespace: str, name: str) -> str:
    """Return the name by which the API server knows a ServiceAccount."""
    return f"system:serviceaccount:{namespace}:{name}"


def until_permitted(
    plane: ControlPlane, user: str, verb: str, resource: str, namespace: str, *, permitted: bool = True
) -> None:
    """Wait until the API server, which learns of roles by a watch, permits or denies a request of a user.

    Args:
        plane: The control plane.
        user: The name, as `user_name` returns it.
        verb: An RBAC verb.
        resource: `secrets`, or `secrets/NAME` for a single object.
        namespace: The namespace.
        permitted: The expected answer.
    """
    deadline = time.monotonic() + SECONDS
    while True:
        question = ("auth", "can-i", verb, resource, f"--as={user}", f"--namespace={namespace}")
        if (plane.kubectl(*question, check=False).returncode == 0) == permitted:
            return
        assert time.monotonic() < deadline, f"{user} may {'not ' if permitted else ''}{verb} {resource}"
        time.sleep(PROBE)


async def refusal(kubeconfig: Path, kind: Kind, body: Object) -> str:
    """Return the message with which the API server refuses a user's creation; empty if it would be stored."""
    return await _refusal(kubeconfig, lambda client: client.create(kind, body, manager="user", dry_run=True))


async def changed_refusal(kubeconfig: Path, kind: Kind, obj: Object, *operations: Object) -> str:
    """Return the message with which the API server refuses a user's JSON patch; empty if it is stored."""
    meta = obj["metadata"]
    return await _refusal(
        kubeconfig,
        lambda client: client.json_patch(kind, meta["name"], meta["namespace"], operations, manager="user"),
    )


async def _refusal(kubeconfig: Path, request: Callable[[Client], Awaitable[Object]]) -> str:
    async with Client(credentials.from_kubeconfig(str(kubeconfig)), user_agent="user") as client:
        try:
            await request(client)
        except ApiError as error:
            return error.message
    return ""


async def until_refused(kubeconfig: Path, kind: Kind, body: Object) -> str:
    """Return the message of the refusal, once the policy that causes it is in force."""
    async with asyncio.timeout(SECONDS):
        while True:
            if words := await refusal(kubeconfig, kind, body):
                return words
            # A policy is in force a moment after it is stored, and nothing of its status reports when.
            await asyncio.sleep(PROBE)
