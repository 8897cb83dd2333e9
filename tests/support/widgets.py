"""Run the example's provider on a suite, while the test simulates its upstream operator."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU
from support.suites import install_crd
from support.waiting import reason, until

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples"
WIDGETS: Final = Kind("example.com", "v1", "widgets", "Widget")
SPEC: Final[dict[str, Any]] = {**GPU, "image": "example.com/vllm:1"}
"""A spec that the provider supports."""


def install(suite: Suite) -> Component:
    """Install the CRD and the provider as in the guide. The process is not started."""
    install_crd(suite, yaml.safe_load((EXAMPLES / "provider" / "widgets.crd.yaml").read_text()))
    return suite.install(
        "widgets", documents=list(yaml.safe_load_all((EXAMPLES / "provider" / "manifest.yaml").read_text()))
    )


def install_faulty(suite: Suite) -> None:
    """Install the provider with the program of `faulty_widgets`."""
    provider = install(suite)
    provider.command = [
        sys.executable,
        str(Path(__file__).with_name("faulty_widgets.py")),
        *provider.command[1:],
    ]


async def says(api: Client, namespace: str, **status: Any) -> Object:
    """Write the Widget's status as the upstream operator."""
    live = await until(api, WIDGETS, "m", namespace, lambda obj: obj)
    assert live
    body = {"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind, "status": status}
    body["metadata"] = {name: live["metadata"][name] for name in ("name", "namespace", "uid")}
    return await api.apply_status(WIDGETS, body, manager="widget-operator")


def reason_of(deployment: Object) -> str | None:
    """Return the reason of `ResourceCreated`."""
    return reason(deployment, "ResourceCreated")
