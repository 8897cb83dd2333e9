"""`make demo-llamastack`: two providers from sources to answers, on a real llama-stack server in a real pod.

With `--keep` (`make demo-llamastack KEEP=1`) all of it stays up until Ctrl-C. `--provider FOLDER:ID:API`
(`PROVIDER=...`) adds a provider of the user's own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import yaml

from kubefoundry_llamastack.names import LLSD, SERVICE_ACCOUNTS
from kubefoundry_local.control_plane import CannotRun
from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from pods import own_provider
from pods.images import distribution, provider
from pods.images.provider import ECHO, GUARD
from pods.llama_stack.distributions import entry, server, serving_pod, stack, until_ready
from pods.own_provider import OwnProvider
from pods.rig import running_node
from support.llamastack_plane import plane_with_crds
from support.waiting import until

INTRODUCTION: Final = """\
LlamaStack on this machine: a real Kubernetes API server, our operator, a node that runs pods as processes of this
machine, and in the pod a real llama-stack server. Its two providers come from examples/llamastack/.
"""

NAMESPACE: Final = "default"
DENIED: Final = "password"
TOLD: Final = (
    "Processing ",
    "Successfully ",
    "Installed ",
    "Found ",
    "WARNING: ",
    "Loading provider",
    "Preflight ",
)
SERVES: Final = "Uvicorn running on"
"""Beginnings of the tool's and pip's lines, and a part of the server's."""

Say = Callable[[str], None]


def main() -> int:
    """The exit code: 0 where both providers gave the right answer, 130 when interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="stay up until Ctrl-C")
    parser.add_argument(
        "--provider",
        action="append",
        default=[],
        type=own_provider.parse,
        metavar="FOLDER:ID:API",
        help="add the provider in this folder, which becomes /lls-provider of an image, to the server; repeatable",
    )
    options = parser.parse_args()
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {text}", flush=True)

    print(INTRODUCTION, flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="kubefoundry-demo-llamastack-") as work:
            return demonstrate(Path(work), say, options.provider, keep=options.keep)
    except (CannotRun, AssertionError, OSError) as problem:
        print(f"demo-llamastack: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def demonstrate(work: Path, say: Say, own: Sequence[OwnProvider], *, keep: bool) -> int:
    with plane_with_crds(work, own=True) as suite:
        say("control plane and CRDs")
        (work / "node").mkdir()
        with running_node(suite, work / "node") as node:
            say("operator and node")
            for image in (distribution.image(work / "distribution"), *provider.examples(work / "providers")):
                node.add(image)
            for item in own:
                node.add(item.image(work / "own"))
            say(f"two wheels built by pip, an image of each: {ECHO}, {GUARD}")
            code = asyncio.run(answers(suite, node, say, own))
            if keep:
                stay(suite)
            return code


def stay(suite: Suite) -> None:
    """Until Ctrl-C or SIGTERM. The network is one of this process's own: a shell has to enter it."""
    # not sigwait: other threads would take the signals, and end the process as it stands
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    enter = f"nsenter --target {os.getpid()} --net --mount"
    with contextlib.suppress(KeyboardInterrupt):
        print(
            f"It stays up until Ctrl-C. In another shell, as root:\n"
            f"  {enter} kubectl --kubeconfig {suite.plane.kubeconfig} get llsd,pods\n"
            f"  {enter} curl http://ADDRESS:8321/v1/models    # the address that stands above\n",
            flush=True,
        )
        signal.pause()


async def answers(suite: Suite, node: Node, say: Say, own: Sequence[OwnProvider]) -> int:
    """Creates the LlamaStackDistribution and calls its server."""
    greeting = f"this is {uuid.uuid4().hex[:6]}, you said: "
    wanted = distribution_with(greeting, own)
    administrator = credentials.from_kubeconfig(str(suite.plane.kubeconfig))
    async with Client(administrator, user_agent="demo") as api:
        await until(api, SERVICE_ACCOUNTS, "default", NAMESPACE, lambda found: found is not None)
        print(f"\n$ kubectl apply -f - <<END\n{yaml.safe_dump(wanted, sort_keys=False)}END\n", flush=True)
        await api.create(LLSD, wanted, manager="demo")
        status = await until_ready(api, "chat", NAMESPACE)
        for row in status["externalProviderStatus"]:
            say(f"provider {row['providerId']}: {row['phase']}, {row['package']} {row['version']}")
        say(f"chat is {status['phase']}, llama-stack {status['version']['llamaStackServerVersion']}")
        pod = await serving_pod(api, "chat", NAMESPACE)
        live = await server(api, "chat", NAMESPACE)
        print(f"\n{excerpts(node, pod)}\nGET {live.url}/v1/providers", flush=True)
        for name, item in sorted((await live.providers()).items()):
            print(f"  {item['api']}: {name}, {item['provider_type']}, {item['config']}", flush=True)
        said = await live.chat("echo/echo-1", "hello")
        refused = await live.shield("words", f"what is your {DENIED}?")
    violation = (refused.body or {}).get("user_message")
    print(
        f"\nPOST {live.url}/v1/chat/completions  model echo/echo-1, 'hello'\n"
        f"  acme-echo answers:  {said.body}\n"
        f"POST {live.url}/v1/safety/run-shield  shield words, 'what is your {DENIED}?'\n"
        f"  acme-guard answers: {violation}\n",
        flush=True,
    )
    right = (said.body, violation) == (f"{greeting}hello", f"'{DENIED}' is not allowed here")
    say("both answers are those that the LlamaStackDistribution configures" if right else "a wrong answer")
    return 0 if right else 1


def excerpts(node: Node, pod: Object) -> str:
    """What the containers of the pod wrote: the tool's lines, and the server's own that it serves."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    made = []
    for container in (*spec["initContainers"], *spec["containers"]):
        made.append(f"$ kubectl logs {name} -c {container['name']}")
        lines = node.log(NAMESPACE, name, container["name"]).splitlines()
        made += [f"  {line}" for line in lines if line.startswith(TOLD) or SERVES in line]
    return "\n".join(made)


def distribution_with(greeting: str, own: Sequence[OwnProvider]) -> Object:
    providers = {
        "inference": [entry("echo", ECHO, prefix=greeting)],
        "safety": [entry("guard", GUARD, deny=[DENIED])],
    }
    for item in own:
        providers.setdefault(item.section, []).append(entry(item.provider_id, item.image_name))
    # the distribution's own run.yaml has a shield for whichever provider this names
    shields = [{"name": "SHIELD_PROVIDER", "value": "guard"}]
    return stack("chat", NAMESPACE, env=shields, externalProviders=providers)


if __name__ == "__main__":
    sys.exit(main())
