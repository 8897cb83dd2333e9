"""Run the Widget provider (in Python, in shell or without code) on a suite; the test is its upstream operator."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._functions.main import PROGRAM, installed, mapped
from support.deployments import GPU, model_deployment
from support.suites import install_crd
from support.waiting import reason, until

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples"
SHELL: Final = EXAMPLES / "functions" / "shell"
MAPPING: Final = EXAMPLES / "mapping" / "widgets.yaml"
FUNCTIONS: Final = str(Path(sys.executable).parent / PROGRAM)
WIDGETS: Final = Kind("example.com", "v1", "widgets", "Widget")
SPEC: Final[dict[str, Any]] = {**GPU, "image": "example.com/vllm:1"}
"""A spec that the provider supports."""


def in_python() -> list[Object]:
    """Return the manifest of the guide."""
    return list(yaml.safe_load_all((EXAMPLES / "provider" / "manifest.yaml").read_text()))


def in_shell(command: str = str(SHELL / "provider.sh"), *more: str) -> list[Object]:
    """Return the manifest of the shell example, with a command for the functions and more arguments."""
    documents = list(yaml.safe_load_all((SHELL / "manifest.yaml").read_text()))
    container = _container(documents)
    kept = [word for word in container["args"] if not word.startswith("--command=")]
    container["args"] = [*kept, f"--command={command}", *more]
    return documents


def without_code(file: Path = MAPPING) -> list[Object]:
    """Return the manifest of a mapping. The process reads the file itself, because no ConfigMap is mounted here."""
    documents = installed(mapped(file, {}), "reg/img:1", [], str(file))
    _container(documents)["command"] = [FUNCTIONS, f"--mapping={file}"]
    return documents


def _container(documents: list[Object]) -> Object:
    [deployment] = [document for document in documents if document["kind"] == "Deployment"]
    container: Object = deployment["spec"]["template"]["spec"]["containers"][0]
    return container


def install(suite: Suite, documents: list[Object]) -> Component:
    """Install the CRD and the provider of a manifest. The process is not started."""
    install_crd(suite, yaml.safe_load((EXAMPLES / "provider" / "widgets.crd.yaml").read_text()))
    return suite.install("widgets", documents=documents)


def start(suite: Suite, documents: list[Object]) -> None:
    """Install the provider of a manifest, and start it and core."""
    install(suite, documents)
    suite.start("core", "widgets")


def install_faulty(suite: Suite) -> None:
    """Install the provider with the program of `faulty_widgets`."""
    provider = install(suite, in_python())
    provider.command = [
        sys.executable,
        str(Path(__file__).with_name("faulty_widgets.py")),
        *provider.command[1:],
    ]


async def create(api: Client, namespace: str, name: str = "m", **spec: Any) -> Object:
    """Create a ModelDeployment for the provider, with further fields of its spec."""
    body = model_deployment(name, namespace, {**SPEC, **spec}, provider="widgets")
    return await api.create(MODEL_DEPLOYMENTS, body, manager="test")


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
