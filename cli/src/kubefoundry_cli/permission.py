"""Name the command with which an administrator grants a missing permission."""

from __future__ import annotations

import re
import shlex
from typing import Final

import click

from kubefoundry_cli.hint import kubectl
from kubefoundry_sdk._api.names import GROUP, SYSTEM_NAMESPACE

REFUSAL: Final = re.compile(
    r'User "(?P<user>[^"]+)" cannot (?P<verb>[a-z]+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)" '
    r'(?:in the namespace "(?P<namespace>[^"]+)"|at the cluster scope)'
)
"""The API server's message (apiserver, responsewriters/errors.go). No field of its response has the verb."""

READING: Final = frozenset({"get", "list", "watch"})

OF_A_NAMESPACE: Final = frozenset({GROUP, "", "apps", "events.k8s.io", "kaito.sh", "nvidia.com", "ray.io"})
"""API groups in which the roles `view` and `edit` cover all kinds that the commands need (docs/security.md)."""

EDIT_ONLY: Final = frozenset({"secrets", "services/proxy"})
"""Resources that `view` may not even read."""

WRITING: Final = frozenset(
    {"scale", "pause", "resume", "reselect", "refresh", "eject", "import", "deploy", "chat", "curl"}
)
"""Commands that need the role `edit` in the end, also where a read is refused first."""

OF_ADMINISTRATORS: Final = frozenset({"install", "upgrade", "uninstall", "migrate"})
"""Commands of `controller` and `provider` that write objects of the whole cluster."""

OF_PROVIDERS: Final = frozenset({"inferenceproviderconfigs", "customresourcedefinitions"})
"""Resources that the role `kubefoundry-providers-view` covers."""

ADMINISTRATOR: Final = "ask an administrator of the cluster for this permission"
"""The remedy for a refused read of the parts of KubeFoundry itself or of objects of the cluster.

It names no role: in kubefoundry-system, one that suffices would also permit changes of KubeFoundry.
"""


def remedy(message: str) -> str:
    """Return `ask an administrator: kubectl create rolebinding …` for a refusal; empty if no role of ours helps.

    Args:
        message: The API server's answer with code 403.
    """
    if _is_of_administrators():
        return "ask an administrator of the cluster to run this command"
    refusal = REFUSAL.search(message)
    if refusal is None or refusal["user"] == "system:anonymous":
        return ""
    if refusal["namespace"] is None:
        reads = refusal["verb"] in READING
        return _in_cluster(refusal["user"], refusal["resource"]) if reads else ""
    return _in_namespace(refusal)


def _in_namespace(refusal: re.Match[str]) -> str:
    """Return the remedy for a refused request in a namespace; empty if no role of ours helps."""
    if refusal["namespace"] == SYSTEM_NAMESPACE:
        return ADMINISTRATOR
    if refusal["group"] not in OF_A_NAMESPACE:
        return ""
    only_reads = refusal["verb"] in READING and refusal["resource"] not in EDIT_ONLY and not _will_write()
    role = "view" if only_reads else "edit"
    return f"ask an administrator: {_binding('rolebinding', role, refusal['user'], refusal['namespace'])}"


def ask_for_edit(user: str, namespace: str) -> str:
    """Return `ask an administrator: kubectl create rolebinding …` for the role `edit`."""
    return f"ask an administrator: {_binding('rolebinding', 'edit', user, namespace)}"


def _is_of_administrators() -> bool:
    """Check whether the running command installs or removes a part of KubeFoundry: no role of ours has its rights."""
    context = click.get_current_context(silent=True)
    if context is None or context.parent is None:
        return False
    return context.parent.info_name in ("controller", "provider") and context.info_name in OF_ADMINISTRATORS


def _will_write() -> bool:
    """Check whether the running command needs the role `edit`. `plan --server` patches in a dry run."""
    context = click.get_current_context(silent=True)
    return context is not None and (context.info_name in WRITING or bool(context.params.get("server")))


def _in_cluster(user: str, resource: str) -> str:
    """Return the remedy for a refused read at the cluster scope."""
    if resource == "modeldeployments":
        context = click.get_current_context(silent=True)
        or_name = "name one namespace with -n, or " if context and context.params.get("everywhere") else ""
        command = _binding("clusterrolebinding", "kubefoundry-view", user)
        return f"{or_name}ask an administrator: {command}"
    if resource in OF_PROVIDERS:
        return f"ask an administrator: {_binding('clusterrolebinding', 'kubefoundry-providers-view', user)}"
    return ADMINISTRATOR


def _binding(kind: str, role: str, user: str, namespace: str | None = None) -> str:
    account = user.removeprefix("system:serviceaccount:")
    subject = f"--user={shlex.quote(user)}" if account == user else f"--serviceaccount={account}"
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{user}-{role}")
    # The administrator has another kubeconfig than the caller.
    return kubectl(f"create {kind} {name} --clusterrole={role} {subject}", namespace, of_caller=False)
