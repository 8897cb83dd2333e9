"""Command lines of vLLM and SGLang on one node of a replica.

The controller of LeaderWorkerSets sets LWS_LEADER_ADDRESS and LWS_WORKER_INDEX in each container, and the kubelet
puts them into the arguments. Rank 0 is the leader, which serves.
"""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk.engine import Derived, Parallel, argv, literal, parallel
from kubefoundry_sdk.spec import ModelDeploymentSpec

PORT: Final = 8000
RENDEZVOUS: Final = "20000"
"""Port on which the leader waits for the other nodes."""

PLACED: Final = frozenset(
    {"nnodes", "node-rank", "master-addr", "master-port", "headless", "dist-init-addr", "nccl-init-addr"}
)
"""Flags that place a process among the nodes. Only the provider sets them (contract §2)."""

COMMANDS: Final = {"vllm": ["vllm", "serve"], "sglang": ["python3", "-m", "sglang.launch_server"]}
CONTEXT: Final = {"vllm": "max-model-len", "sglang": "context-length"}


def sizes(spec: ModelDeploymentSpec, nodes: int) -> Parallel:
    """Return the parallel sizes of a replica."""
    return parallel(spec.engine.type, spec.engine.args, spec.gpu_count, nodes=nodes)


def arguments(spec: ModelDeploymentSpec, nodes: int, *, leads: bool) -> list[str]:
    """Return the arguments on the leader's node, or on each of the other nodes."""
    engine = spec.engine.type or ""
    # SGLang has no form --no-X of a switch, so a switch that is off is left out.
    args = {name: value for name, value in spec.engine.args.items() if engine == "vllm" or value != "false"}
    model = [literal(spec.model.id or "")] if engine == "vllm" else []
    return [*model, *argv(derived(spec, nodes), args), *_place(engine, nodes, leads)]


def derived(spec: ModelDeploymentSpec, nodes: int) -> list[Derived]:
    """Return the options that follow from fields of the spec."""
    engine = spec.engine.type or ""
    trust = str(spec.engine.trust_remote_code).lower()
    options = [
        Derived("served-model-name", spec.served_name or "", "model.servedName"),
        Derived("host", "0.0.0.0", "LeaderWorkerSet"),
        Derived("port", str(PORT), "LeaderWorkerSet"),
        Derived("trust-remote-code", trust, "engine.trustRemoteCode", switch=True),
    ]
    if engine == "sglang":
        options.insert(0, Derived("model-path", spec.model.id or "", "model.id"))
    if spec.engine.context_length is not None:
        options.append(Derived(CONTEXT[engine], str(spec.engine.context_length), "engine.contextLength"))
    split = sizes(spec, nodes)
    if split.tensor > 1:
        options.append(Derived("tensor-parallel-size", str(split.tensor), "resources.gpu.count"))
    if split.pipeline > 1:
        options.append(Derived("pipeline-parallel-size", str(split.pipeline), "provider.overrides.nodes"))
    return options


def _place(engine: str, nodes: int, leads: bool) -> list[str]:
    """Return the flags that place a node. The kubelet expands the variables, so `argv` must not escape them."""
    if nodes == 1:
        return []
    common = ["--nnodes", str(nodes), "--node-rank", "$(LWS_WORKER_INDEX)"]
    if engine == "sglang":
        return [*common, "--dist-init-addr", f"$(LWS_LEADER_ADDRESS):{RENDEZVOUS}"]
    # Without --headless, vLLM starts an API server on each node and fails.
    follows = [] if leads else ["--headless"]
    return [*common, "--master-addr", "$(LWS_LEADER_ADDRESS)", "--master-port", RENDEZVOUS, *follows]
