"""The real Kueue and KubeRay on simulated nodes, and our core, selector, direct and KubeRay: one control plane."""

from __future__ import annotations

import base64
import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_local.control_plane import CannotRun, ControlPlane
from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import Suite
from operators.rig import build, node, process, start_plane, start_programs

NODES: Final = 4
COMPONENTS: Final = ("core", "selector", "direct", "kuberay")
NAMESPACE: Final = "kueue-system"
SERVICE: Final = "kueue-webhook-service"
SECRET: Final = "kueue-webhook-server-cert"
ADDRESS: Final = "198.19.255.1"
"""Of the webhooks: an address of the pods' network, because the API server refuses endpoints on loopback."""

PORT: Final = 9443
START: Final = 60.0
POOL_LABEL: Final = "example.com/pool"
"""Label of the nodes that Kueue writes into node selectors (`team.create_flavor`)."""


@contextmanager
def running_rig(folder: Path) -> Iterator[Suite]:
    """All of it, started. Raises CannotRun."""
    kwok, kuberay, kueue = build("kwok"), build("kuberay"), build("kueue")
    with ExitStack() as stack:
        suite = start_plane(stack, folder, [kuberay.parent], map(_node, range(NODES)))
        environment = start_programs(stack, suite.plane, kwok, kuberay, folder)
        _start_kueue(stack, suite.plane, kueue, environment, folder)
        suite.start(*COMPONENTS)
        yield suite


def _node(number: int) -> dict[str, Any]:
    machine = node(number)
    machine["metadata"]["labels"] = {POOL_LABEL: "gpu"}
    return machine


def _start_kueue(
    stack: ExitStack, plane: ControlPlane, program: Path, environment: Mapping[str, str], folder: Path
) -> None:
    """Start Kueue with certificates of its own until the stack ends, and wait until it is ready."""
    plane.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(_objects(program.parent)))
    certificates, health = folder / "certificates", free_port()
    certificates.mkdir()
    configuration = folder / "kueue.yaml"
    configuration.write_text(yaml.safe_dump(_configuration(certificates, health)))
    command = [str(program), f"--config={configuration}", "--feature-gates=VisibilityOnDemand=false"]
    stack.enter_context(process(command, environment, folder / "kueue.log"))
    _mount(plane, certificates)
    _wait_ready(health)


def _configuration(certificates: Path, health: int) -> dict[str, Any]:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": PORT, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": SERVICE,
            "webhookSecretName": SECRET,
        },
        "managedJobsNamespaceSelector": _outside(),
        "integrations": {"frameworks": ["pod", "deployment", "ray.io/raycluster", "ray.io/rayservice"]},
    }


def _outside() -> dict[str, Any]:
    """Return the selector of the namespaces in which Kueue works."""
    outside = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["kube-system", NAMESPACE],
    }
    return {"matchExpressions": [outside]}


def _objects(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects that Kueue's own manifests install, but for its Deployment and its roles."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    meta = {"namespace": NAMESPACE}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": {**meta, "name": SECRET}}
    ports = [{"port": PORT, "protocol": "TCP"}]
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**meta, "name": SERVICE},
        "spec": {"ports": ports},
    }
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**meta, "name": SERVICE, "labels": {"kubernetes.io/service-name": SERVICE}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
        "ports": ports,
    }
    patches = {}
    for file in folder.glob("webhook_in_*.yaml"):
        patch = yaml.safe_load(file.read_text())
        patches[patch["metadata"]["name"]] = patch["spec"]
    for file in sorted(folder.glob("kueue.x-k8s.io_*.yaml")):
        crd = yaml.safe_load(file.read_text())
        crd["spec"] |= patches.get(crd["metadata"]["name"], {})
        if webhook := crd["spec"].get("conversion", {}).get("webhook"):
            webhook["clientConfig"]["service"] |= {"namespace": NAMESPACE, "name": SERVICE, "port": PORT}
        yield crd
    for configuration in yaml.safe_load_all((folder / "manifests.yaml").read_text()):
        configuration["metadata"]["name"] = f"kueue-{configuration['metadata']['name']}"
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"]["service"] |= {"namespace": NAMESPACE, "name": SERVICE, "port": PORT}
            webhook["namespaceSelector"] = _outside()
        yield configuration


def _mount(plane: ControlPlane, folder: Path) -> None:
    """Write Kueue's certificates into its folder once it has made them, as a kubelet does for a volume."""
    plane.kubectl(
        "wait",
        f"secret/{SECRET}",
        f"--namespace={NAMESPACE}",
        "--for=jsonpath={.data.tls\\.crt}",
        f"--timeout={START:.0f}s",
    )
    read = plane.kubectl("get", "secret", SECRET, f"--namespace={NAMESPACE}", "-o", "json")
    for name, content in json.loads(read.stdout)["data"].items():
        (folder / name).write_bytes(base64.b64decode(content))


def _wait_ready(port: int) -> None:
    """Poll Kueue's /readyz until it succeeds, as a kubelet does. Raises CannotRun if that takes too long."""
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise CannotRun(f"Kueue was not ready within {START:.0f} s")
