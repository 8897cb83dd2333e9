"""The components as processes on this machine, as the Deployments of `manifests/` describe them.

Command, arguments and environment come from the manifest. Each process has the token of its own ServiceAccount and
reaches the API server as a pod does. Two things differ from a cluster. The ports are free ones, because all processes
share an address. Webhook configurations name a loopback URL, because there is no kube-proxy for their Service.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from kubefoundry_local.apply import apply
from kubefoundry_local.child_processes import Process, launch
from kubefoundry_local.control_plane import ROOT, CannotRun, ControlPlane, last_line
from kubefoundry_local.ports import free_port
from kubefoundry_sdk._api.foreign_yaml import quick_loader
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS

COMPONENTS: Final = {
    "core": "parts/core.yaml",
    "selector": "provider-selector.yaml",
    **{path.stem: f"providers/{path.name}" for path in sorted((ROOT / "manifests/providers").glob("*.yaml"))},
}
"""Manifests under `manifests/` by component. A provider has the name of its file."""

OPT_IN: Final = {"llamastack": "llamastack/llamastack.yaml"}
"""Components that are installed only on request."""

NAMESPACE: Final = "kubefoundry-system"
START: Final = 180.0
PROBE: Final = 0.02
"""Longest wait for a component to become ready, and interval of its checks, in seconds."""

WEBHOOK_TIMEOUT: Final = 30
"""Time-out of reviews in seconds, the longest of Kubernetes."""

STOP: Final = 30.0
"""Seconds between SIGTERM and SIGKILL, as with a kubelet."""


@dataclass(slots=True)
class Component:
    """A process of a component. `log` has its stderr, `health_port` serves /healthz and /readyz."""

    name: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    health_port: int
    metrics_port: int
    process: Process | None = None

    def start(self) -> None:
        """Start the process."""
        self.process = launch(self.command, self.environment, self.log)

    def wait_ready(self) -> None:
        """Poll /readyz until it succeeds, as a kubelet does.

        Raises:
            CannotRun: The process ended or took too long. The message has its last line.
        """
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            if not self.running:
                raise CannotRun(f"{self.name} ended: {last_line(self.log)}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.health_port}/readyz", timeout=2):
                    return
            except OSError:
                time.sleep(PROBE)
        raise CannotRun(f"{self.name} was not ready within {START} s: see {self.log}")

    def stop(self) -> int:
        """Stop the process as `end` does, and return its exit code."""
        assert self.process is not None
        try:
            return end(self.process)
        finally:
            self.process = None

    def kill(self) -> None:
        """Kill the process with SIGKILL, as a crash would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None


@dataclass(slots=True)
class Suite:
    """The components that are installed on a control plane, and their processes.

    `webhook_timeout` is the time-out of reviews in seconds for components that are installed afterwards.
    """

    plane: ControlPlane
    folder: Path
    components: dict[str, Component] = field(default_factory=dict)
    simulators: list[Process] = field(default_factory=list)
    webhook_timeout: int = WEBHOOK_TIMEOUT

    def install_ground(self) -> None:
        """Install namespace, CRDs and user roles, and wait until both kinds are served."""
        # kubectl warns of objects that it did not apply itself, and users apply these, too.
        self.plane.kubectl("apply", "-f", str(ROOT / "manifests" / "namespace.yaml"))
        self.plane.kubectl("apply", "-k", str(ROOT / "crds"))
        self.plane.kubectl("apply", "-f", str(ROOT / "manifests" / "users.yaml"))
        self.plane.wait_served(MODEL_DEPLOYMENTS.crd, PROVIDER_CONFIGS.crd)

    def install(
        self,
        name: str,
        *,
        environment: Mapping[str, str] | None = None,
        documents: Sequence[dict[str, Any]] = (),
    ) -> Component:
        """Apply the manifest of a component, and return its process, which is not started.

        Args:
            name: The name of the component.
            environment: Overrides the environment of the manifest.
            documents: The manifest; empty for a component of `manifests/`.
        """
        documents = documents or manifest(name)
        web = free_port() if name == "core" else 0
        self._apply(documents, web)
        return self._prepare(name, documents, web, environment or {})

    def _apply(self, documents: Sequence[dict[str, Any]], web: int) -> None:
        applied = [
            local_webhooks(document, web, self.webhook_timeout)
            for document in documents
            if document["kind"] != "Deployment"
        ]
        apply(self.plane, applied)

    def _prepare(
        self, name: str, documents: Sequence[dict[str, Any]], web: int, environment: Mapping[str, str]
    ) -> Component:
        """Return the process of an installed component. `web`: its port for webhooks, or 0."""
        [deployment] = [document for document in documents if document["kind"] == "Deployment"]
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        webhooks = webhook_variables(web) if web else {}
        variables = {**self._in_cluster(account, folder), **webhooks, **environment}
        component = process_of(name, deployment, folder, variables)
        self.components[name] = component
        return component

    def uninstall(self, name: str) -> None:
        """Stop the process, and delete the objects of its manifest."""
        component = self.components.pop(name)
        if component.running:
            component.stop()
        self.plane.kubectl(
            "delete", "--ignore-not-found", "-f", str(ROOT / "manifests" / {**COMPONENTS, **OPT_IN}[name])
        )

    def install_missing(self, *names: str) -> None:
        """Install the components that are not installed yet: of `names`, or of all if no name is given."""
        missing = {name: manifest(name) for name in names or COMPONENTS if name not in self.components}
        if missing:
            web = free_port()
            # A single call for all components saves connections.
            self._apply([document for documents in missing.values() for document in documents], web)
            for name, documents in missing.items():
                self._prepare(name, documents, web if name == "core" else 0, {})

    def start(self, *names: str) -> None:
        """Install and start these components, or all if no name is given, and wait until they are ready."""
        self.install_missing(*names)
        for name in names or COMPONENTS:
            if not self.components[name].running:
                self.components[name].start()
        for name in names or COMPONENTS:
            self.components[name].wait_ready()

    def simulate(self, *providers: str, flags: Sequence[str] = ()) -> Process:
        """Start simulated upstream operators for these providers as administrator. They stop with the suite."""
        command = [sys.executable, "-m", "kubefoundry_simulators", "--kubeconfig", str(self.plane.kubeconfig)]
        self.folder.mkdir(parents=True, exist_ok=True)
        command += ["--only", ",".join(providers), *flags]
        process = launch(command, os.environ, self.folder / "simulators.log")
        self.simulators.append(process)
        return process

    def stop(self) -> None:
        """Stop all processes, components first."""
        try:
            self._stop_components()
        finally:
            for process in self.simulators:
                end(process)

    def _stop_components(self) -> None:
        for component in self.components.values():
            if component.process is not None:
                component.process.terminate()
        for component in self.components.values():
            if component.process is not None:
                component.stop()

    def _in_cluster(self, account: str, folder: Path) -> dict[str, str]:
        """Write the files of a ServiceAccount, and return the variables that a kubelet would set."""
        token, authority = self.plane.token(NAMESPACE, account), self.plane.authority()
        return account_files(folder, NAMESPACE, token, authority, self.plane.server)


def webhook_variables(port: int) -> dict[str, str]:
    """Return the variables of a core whose webhooks are called at this port of the loopback address."""
    return {
        "KUBEFOUNDRY_WEBHOOK_PORT": str(port),
        "KUBEFOUNDRY_WEBHOOK_HOST": "127.0.0.1",
        # No Service sends reviews to a process that has ended.
        "KUBEFOUNDRY_SHUTDOWN_DELAY": "0s",
    }


def process_of(
    name: str, deployment: Mapping[str, Any], folder: Path, environment: Mapping[str, str]
) -> Component:
    """Return the process of a Deployment with one container, which is not started.

    Args:
        name: The name of the component.
        deployment: The Deployment.
        folder: The folder of its log.
        environment: Overrides the environment of the Deployment.
    """
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    health, metrics = free_port(), free_port()
    variables = {
        "PATH": os.environ["PATH"],
        **pod_environment(container),
        "KUBEFOUNDRY_HEALTH_PORT": str(health),
        "KUBEFOUNDRY_METRICS_PORT": str(metrics),
        **environment,
    }
    program, *rest = container["command"]
    command = [str(Path(sys.executable).parent / program), *rest, *container.get("args", ())]
    return Component(name, command, variables, folder / "log", health, metrics)


def account_files(folder: Path, namespace: str, token: str, authority: bytes, server: str) -> dict[str, str]:
    """Write the files of a ServiceAccount as a kubelet does, and return the variables that a pod would have."""
    (folder / "token").write_text(token)
    (folder / "token").chmod(0o600)
    (folder / "ca.crt").write_bytes(authority)
    (folder / "namespace").write_text(namespace)
    address = urlsplit(server)
    return {
        "KUBERNETES_SERVICE_HOST": address.hostname or "",
        "KUBERNETES_SERVICE_PORT": str(address.port or 443),
        "KUBEFOUNDRY_SERVICE_ACCOUNT_DIR": str(folder),
    }


def end(process: Process) -> int:
    """Send SIGTERM, and return the exit code.

    Raises:
        TimeoutExpired: The process did not exit in time and was killed.
    """
    process.terminate()
    try:
        return process.wait(STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def manifest(name: str) -> list[dict[str, Any]]:
    """Read the manifest of a component."""
    text = (ROOT / "manifests" / {**COMPONENTS, **OPT_IN}[name]).read_text()
    return [document for document in yaml.load_all(text, quick_loader()) if document]


def pod_environment(container: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of a container. Variables that the kubelet sets, as the pod's uid, get a random value."""
    variables: dict[str, str] = {}
    for variable in container.get("env", ()):
        variables[variable["name"]] = variable.get("value") or str(uuid.uuid4())
    return variables


def local_webhooks(document: dict[str, Any], port: int, timeout: int = WEBHOOK_TIMEOUT) -> dict[str, Any]:
    """Replace the Service of a webhook configuration by a loopback URL. Other objects stay unchanged.

    The time-out becomes longer, because a machine with a control plane and all components may answer later than a
    cluster. An object whose review times out is stored without a review.
    """
    for webhook in document.get("webhooks", ()) if "WebhookConfiguration" in document["kind"] else ():
        path = webhook["clientConfig"]["service"]["path"]
        webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}"}
        webhook["timeoutSeconds"] = timeout
    return document
