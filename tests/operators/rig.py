"""The real KubeRay operator on simulated nodes, a simulated Ray in their pods, our processes: one control plane."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_local.control_plane import BUILD, CannotRun, ControlPlane, own_control_plane
from kubefoundry_local.suite import Suite, end
from support.upstream import STANDINS

NODES: Final = 8
GPUS: Final = 8
"""Of each node."""

SIMULATED: Final = ("kaito", "dynamo")
"""Operators that cannot be had as Go modules: the simulated ones, for a change of provider."""


@contextmanager
def running_rig(folder: Path) -> Iterator[Suite]:
    """All of it, our five processes started. Raises CannotRun."""
    kwok, kuberay = build("kwok"), build("kuberay")
    crds = [kuberay.parent, *(STANDINS / f"{name}.yaml" for name in SIMULATED)]
    with ExitStack() as stack:
        suite = start_plane(stack, folder, crds, map(node, range(NODES)))
        start_programs(stack, suite.plane, kwok, kuberay, folder)
        suite.simulate(*SIMULATED)
        suite.start()
        yield suite


def start_plane(
    stack: ExitStack, folder: Path, crds: Iterable[Path], nodes: Iterable[dict[str, Any]]
) -> Suite:
    """Start a control plane with these CRDs and nodes until the stack ends. Return our suite, not started."""
    flags = ["--scheduler", "--all-controllers", *(f"--crds={crd}" for crd in crds)]
    plane = stack.enter_context(own_control_plane(folder / "plane", flags))
    suite = Suite(plane, folder / "suite")
    stack.callback(suite.stop)
    suite.install_ground()
    plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(nodes))
    return suite


def start_programs(
    stack: ExitStack, plane: ControlPlane, kwok: Path, kuberay: Path, folder: Path
) -> dict[str, str]:
    """Starts the nodes, KubeRay and the simulated Ray until the stack ends. Returns their environment."""
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    for name, command in {
        "kwok": [
            str(kwok),
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--cidr=198.18.0.0/16",
            "--node-ip=198.19.0.1",
            # without Leases the nodes count as lost after 40 s, and their pods are evicted
            "--node-lease-duration-seconds=40",
            *(f"--config={stage}" for stage in sorted(kwok.parent.glob("*.yaml"))),
        ],
        "kuberay": [str(kuberay), "--use-kubernetes-proxy", "--enable-leader-election=false"],
        "ray": [sys.executable, "-m", "kubefoundry_nodes.ray.program", f"--kubeconfig={plane.kubeconfig}"],
    }.items():
        stack.enter_context(process(command, environment, folder / f"{name}.log"))
    return environment


def build(target: str) -> Path:
    """A program built from Go modules, from the cache where it is there. Raises CannotRun."""
    done = subprocess.run([str(BUILD), target], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise CannotRun(f"{BUILD} {target} failed: its last lines say why")
    return Path(done.stdout.strip().splitlines()[-1])


@contextmanager
def process(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[None]:
    """Runs it for the time of the block. Fails where it has ended by itself."""
    with log.open("wb") as output:
        running = subprocess.Popen(
            command, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield
        assert running.poll() is None, f"{command[0]} ended by itself: {log.read_text()[-2000:]}"
    finally:
        end(running)


def node(number: int) -> dict[str, Any]:
    """One that KWOK keeps alive."""
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"gpu-{number}", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
