"""A second replica of each component, as a Deployment with `replicas: 2` has it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import Component, Suite, end


@contextmanager
def second_replicas(suite: Suite, names: Sequence[str], folder: Path) -> Iterator[dict[str, Component]]:
    """Start another replica of running components, and wait until each is ready.

    They speak to the API server itself, even if the first ones have a proxy.
    """
    replicas = {name: _second(suite, suite.components[name], folder / name) for name in names}
    try:
        for component in replicas.values():
            component.start()
        for component in replicas.values():
            component.wait_ready()
        yield replicas
    finally:
        for component in replicas.values():
            if component.process is not None:
                end(component.process)


def _second(suite: Suite, first: Component, folder: Path) -> Component:
    account = folder / "account"
    shutil.copytree(first.environment["KUBEFOUNDRY_SERVICE_ACCOUNT_DIR"], account)
    (account / "ca.crt").write_bytes(suite.plane.authority())
    health, metrics = free_port(), free_port()
    environment = {
        **first.environment,
        "KUBEFOUNDRY_SERVICE_ACCOUNT_DIR": str(account),
        "KUBERNETES_SERVICE_PORT": str(urlsplit(suite.plane.server).port),
        "KUBEFOUNDRY_IDENTITY": f"second-{first.name}",
        "KUBEFOUNDRY_HEALTH_PORT": str(health),
        "KUBEFOUNDRY_METRICS_PORT": str(metrics),
    }
    if "KUBEFOUNDRY_WEBHOOK_PORT" in environment:
        environment["KUBEFOUNDRY_WEBHOOK_PORT"] = str(free_port())
    return replace(
        first,
        environment=environment,
        log=folder / "log",
        health_port=health,
        metrics_port=metrics,
        process=None,
    )
