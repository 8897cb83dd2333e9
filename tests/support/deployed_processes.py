"""Processes of Deployments that a chart installed, in the place of their pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_local.suite import Suite, account_files, process_of, webhook_variables
from support.model_writes import PROVIDERS

COMPONENTS: Final = ("core", "selector", *(f"provider-{name}" for name in PROVIDERS))
"""Components that the chart installs by default, by the name in their Deployments, kubefoundry-NAME."""


def run_processes(
    suite: Suite,
    deployments: Mapping[str, dict[str, Any]],
    namespace: str,
    port: int,
    environment: Mapping[str, str],
) -> None:
    """Stop the processes of the suite, and start those of these Deployments. `port`: of core's webhooks."""
    for component in suite.components.values():
        if component.running:
            component.stop()
    for name, deployment in deployments.items():
        folder = suite.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        token = suite.plane.token(namespace, f"kubefoundry-{name}")
        files = account_files(folder, namespace, token, suite.plane.authority(), suite.plane.server)
        webhooks = webhook_variables(port) if name == "core" else {}
        variables = {**files, **webhooks, **environment}
        suite.components[name] = process_of(name, deployment, folder, variables)
        suite.components[name].start()
    for name in deployments:
        suite.components[name].wait_ready()
