"""Format further commands with the options that name the cluster: without them they would reach another cluster."""

from __future__ import annotations

import shlex
from typing import Final

import click

CLUSTER: Final = {"context": "--context", "kubeconfig": "--kubeconfig"}

OF_NO_NAMESPACE: Final = ("controller", "provider", "version")
"""Commands that are about the whole cluster. They ignore -n."""

_EVERYWHERE: Final = "kubefoundry_cli.hint.everywhere"


def name_namespaces() -> None:
    """Add the model's namespace to all hints of the running command, which shows models of several namespaces."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_EVERYWHERE] = True


def hint(command: str, namespace: str | None = None) -> str:
    """Return `kubefoundry status m -n team-a`: with the options of the command that runs now.

    Args:
        command: The command and its arguments.
        namespace: The namespace of the object that the command is about, if it may be another one than `-n`.
    """
    context = click.get_current_context(silent=True)
    parameters = context.params if context else {}
    everywhere = context is not None and (parameters.get("everywhere") or context.meta.get(_EVERYWHERE))
    if namespace is None or not (everywhere or parameters.get("namespace")):
        namespace = parameters.get("namespace")
    if command.endswith(" -A") or command.split(" ")[0] in OF_NO_NAMESPACE:
        namespace = None
    where = f" -n {shlex.quote(str(namespace))}" if namespace else ""
    return f"kubefoundry {command}{where}{_cluster()}"


def kubectl(command: str, namespace: str | None = None, *, of_caller: bool = True) -> str:
    """Return `kubectl -n team-a describe pod m --context x`: for the cluster of the command that runs now.

    Without `of_caller` it lacks the options of the caller's kubeconfig, because somebody else is to run it.
    """
    where = f"-n {shlex.quote(namespace)} " if namespace else ""
    return f"kubectl {where}{command}{_cluster() if of_caller else ''}"


def _cluster() -> str:
    context = click.get_current_context(silent=True)
    parameters = context.params if context else {}
    return "".join(
        f" {option} {shlex.quote(str(parameters[name]))}"
        for name, option in CLUSTER.items()
        if parameters.get(name)
    )
