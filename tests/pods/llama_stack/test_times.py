"""How long the steps of a start take, from real containers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from kubefoundry_llamastack.names import LLSD, PODS
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.client import Client
from pods.images.provider import ECHO, GUARD
from pods.llama_stack.distributions import STARTED, Server, entry, stack, until_answers
from support.llamastack import new_pod
from support.waiting import until

pytestmark = pytest.mark.integration

STEPS = ("external-provider-echo", "external-provider-guard", "extract-distribution-config", "merge-config")


def reached(pod: Object) -> Iterator[str]:
    """Init containers that have ended well, and the server's container once it runs."""
    status = pod.get("status") or {}
    for item in status.get("initContainerStatuses") or ():
        if (item["state"].get("terminated") or {}).get("exitCode") == 0:
            yield item["name"]
    for item in status.get("containerStatuses") or ():
        if "running" in item["state"]:
            yield item["name"]


@pytest.mark.accept("FR-012", "US1-2")
async def test_the_containers_run_one_after_another_and_the_server_follows(
    api: Client, node: Node, examples: None, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    providers = {"safety": [entry("guard", GUARD)], "inference": [entry("echo", ECHO)]}
    seen: dict[str, float] = {}

    def note(pod: Object | None) -> bool:
        for name in reached(pod or {}):
            seen.setdefault(name, time.monotonic())
        return "llama-stack" in seen

    created = time.monotonic()
    await api.create(LLSD, stack("chat", namespace, externalProviders=providers), manager="user")
    found = await new_pod(api, "chat", namespace, ECHO)
    name = found["metadata"]["name"]
    begun = time.monotonic()
    pod = await until(api, PODS, name, namespace, note, seconds=STARTED)
    assert pod is not None
    await until_answers(Server.of(pod), "/v1/health")
    healthy = time.monotonic()

    log = node.log(namespace, name, "llama-stack")
    reported = re.search(r"Preflight passed; external providers: 2; ([\d.]+) s, ([\d.]+) s of it", log)
    ends = [(item["state"]["terminated"]) for item in pod["status"]["initContainerStatuses"]]
    assert reported, log
    assert [item["name"] for item in pod["status"]["initContainerStatuses"]] == list(STEPS)
    assert all(one["finishedAt"] <= other["startedAt"] for one, other in pairwise(ends))
    with capsys.disabled():
        steps = [begun, *(seen[step] for step in STEPS)]
        for step, (before, after) in zip(STEPS, pairwise(steps), strict=True):
            print(f"\n{step}: {after - before:.1f} s", end="")
        print(
            f"\npreflight: {reported[1]} s, of it imports {reported[2]} s"
            f"\nserver healthy: {healthy - seen['llama-stack']:.1f} s after its container runs, preflight included"
            f"\nfrom the LlamaStackDistribution's creation to healthy: {healthy - created:.1f} s"
        )
