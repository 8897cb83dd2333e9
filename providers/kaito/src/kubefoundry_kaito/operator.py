"""Reads KAITO's mode of node provisioning from KAITO's own Deployment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubefoundry_kaito.settings import PROVISIONING
from kubefoundry_sdk import Object

DEPLOYMENT: Final = "kaito-workspace"
"""KAITO's documented Helm release, which names the Deployment (website/docs/installation.md @v0.12.0)."""

NAMESPACE: Final = "kaito-workspace"
"""The namespace on the same page."""

PROVISIONER: Final = "--node-provisioner"
GATES: Final = "--feature-gates"
OFF: Final = "disableNodeAutoProvisioning"
"""Flags and gate of the workspace controller (cmd/workspace/main.go @v0.12.0): if the provisioner is not set, the
gate decides; if neither is, KAITO creates nodes."""


def read(deployment: Object) -> Mapping[str, str]:
    """Return the provisioning mode; nothing if no container has KAITO's flags."""
    flags = dict(_flags(deployment))
    if provisioner := flags.get(PROVISIONER):
        return {PROVISIONING: "byo" if provisioner == "byo" else "auto"}
    if GATES not in flags:
        return {}
    gates = dict(gate.partition("=")[::2] for gate in flags[GATES].split(","))
    return {PROVISIONING: "byo" if gates.get(OFF, "").lower() == "true" else "auto"}


def _flags(deployment: Object) -> Iterator[tuple[str, str]]:
    """Yield `--name=value` of every container, with any number of dashes."""
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        for argument in (*(container.get("command") or ()), *(container.get("args") or ())):
            name, stated, value = argument.partition("=")
            if stated and name.startswith("-"):
                yield f"--{name.lstrip('-')}", value
