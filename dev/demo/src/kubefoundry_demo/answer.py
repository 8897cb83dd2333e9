"""The model that answers. Its pods are real, and clients send requests while it is scaled, changed or loses pods."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kubefoundry_demo import load
from kubefoundry_demo.examples import NAMESPACE, deployment
from kubefoundry_local.control_plane import CannotRun, ControlPlane
from kubefoundry_nodes.kubelet import addresses
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_nodes.llama import hub, image
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client

FILE: Final = Path(__file__).with_name("tiny-random.yaml")
NAME: Final = "tiny-random"
SERVICE: Final = f"{NAME}-server"
HUB_PORT: Final = 8090
ENGINE: Final = {"KUBEFOUNDRY_DEFAULT_IMAGE": f"llamacpp={image.NAME}"}
"""Environment of provider direct: the default image, because this machine cannot pull the real one."""

PATIENCE: Final = "180"
"""Longest wait for the model to become ready after a change, in seconds."""

INTRODUCTION: Final = f"""
Now one that answers. None of the simulated systems takes it, so provider direct
runs it: a Deployment whose pods are processes of this machine, and in each
llama.cpp's own server (from the wheel xllamacpp, started by a program of ours)
with a model of RANDOM weights: what it says has no meaning.

$ kubectl apply -n {NAMESPACE} -f {FILE.name}
"""

Say = Callable[[str], None]


@contextmanager
def ground(plane: ControlPlane, folder: Path) -> Iterator[None]:
    """Run a node with the image of the server, and a hub with the model, until the block ends."""
    folder.mkdir()
    node = Node(plane.kubeconfig, folder)
    node.add(image.image(folder / "image"))
    with hub.serving(addresses.NODE, HUB_PORT, f"kubefoundry/{NAME}", image.model(folder)):
        node.start()
        try:
            yield
        finally:
            node.stop()


def show(plane: ControlPlane, say: Say) -> None:
    """Show a ModelDeployment, its answer, and changes under load. Raises CannotRun."""
    print(INTRODUCTION, flush=True)
    print(FILE.read_text(), flush=True)
    plane.kubectl("apply", "-n", NAMESPACE, "-f", str(FILE))
    _cli(plane, "wait", NAME, "--timeout", PATIENCE)
    status = deployment(plane, NAME)["status"]
    say(f"Ready: GET /v1/models lists {NAME}. {status['provider']['selectedReason']}")
    _cli(plane, "chat", NAME, "What is a pod?", "--max-tokens", "40")
    asyncio.run(_changes(plane, say))


async def _changes(plane: ControlPlane, say: Say) -> None:
    """Change the model while clients send requests. Raises CannotRun if a request failed."""
    url = f"/api/v1/namespaces/{NAMESPACE}/services/{SERVICE}:8000/proxy"
    async with Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent="demo") as client:
        print(
            f"\n{load.CLIENTS} clients ask through the API server, one question after another, and count:\n",
            flush=True,
        )
        async with load.asking(client, url, NAME) as count:

            async def step(text: str, *command: str) -> None:
                sent, failed = count.sent, count.failed
                print(f"$ kubectl {' '.join(command)}", flush=True)
                await asyncio.to_thread(plane.kubectl, *command, "-n", NAMESPACE)
                await asyncio.to_thread(_rolled_out, plane)
                say(f"{text}: {count.sent - sent} requests sent meanwhile, {count.failed - failed} failed")

            await step("two replicas", "scale", f"md/{NAME}", "--replicas=2")
            before = await _context(client, url)
            change = json.dumps({"spec": {"engine": {"contextLength": 1024}}})
            await step("context changed", "patch", f"md/{NAME}", "--type=merge", f"--patch={change}")
            say(f"/v1/models: n_ctx was {before}, is {await _context(client, url)}")
            await step("a pod gone, another in its place", "delete", f"pod/{_pods(plane)[0]}", "--wait=false")
    say(f"{count.sent} requests sent, {count.failed} failed")
    if count.failures:
        raise CannotRun(f"requests failed: {dict(count.failures.most_common(3))}")


def _rolled_out(plane: ControlPlane) -> None:
    """Wait until the newest spec serves with all its replicas."""
    plane.kubectl("wait", f"md/{NAME}", "-n", NAMESPACE, "--for=condition=Ready", f"--timeout={PATIENCE}s")
    plane.kubectl("rollout", "status", f"deployment/{NAME}", "-n", NAMESPACE, f"--timeout={PATIENCE}s")


async def _context(client: Client, url: str) -> Any:
    """Return the context length in tokens that the server reports."""
    return (await client.read(f"{url}/v1/models"))["data"][0]["meta"]["n_ctx"]


def _pods(plane: ControlPlane) -> list[str]:
    """Return the names of the model's pods that are not terminating."""
    result = plane.kubectl(
        "get", "pods", "-n", NAMESPACE, "-l", f"kubefoundry.ai/model-deployment={NAME}", "-o", "json"
    )
    return [
        pod["metadata"]["name"]
        for pod in json.loads(result.stdout)["items"]
        if "deletionTimestamp" not in pod["metadata"]
    ]


def _cli(plane: ControlPlane, *words: str) -> None:
    """Run the command line on this terminal. Raises CannotRun."""
    shown = " ".join(f"'{word}'" if " " in word else word for word in words)
    print(f"$ kubefoundry {shown} -n {NAMESPACE}", flush=True)
    command = [str(Path(sys.executable).with_name("kubefoundry")), *words, "-n", NAMESPACE]
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    code = subprocess.run(command, env=environment, stderr=subprocess.STDOUT, check=False).returncode
    if code:
        raise CannotRun(f"kubefoundry {shown} ended with {code}")
