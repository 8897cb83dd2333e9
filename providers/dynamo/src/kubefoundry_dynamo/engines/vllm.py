"""The command line of `dynamo.vllm` (sources §2.7, §4.1, §4.2)."""

from __future__ import annotations

from typing import Final

from kubefoundry_dynamo.engines.command_line import (
    Flags,
    Worker,
    command_line,
    model_flags,
    tensor_parallelism,
)
from kubefoundry_sdk.engine import for_command_line
from kubefoundry_sdk.spec import ModelDeploymentSpec

ROLE_FLAGS: Final = ("disaggregation-mode", "is-prefill-worker", "is-decode-worker")
KV_TRANSFER: Final = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'
KV_EVENTS: Final = (
    '{"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:20080","enable_kv_cache_events":true}'
)


def arguments(spec: ModelDeploymentSpec, worker: Worker) -> list[str]:
    """Return the command line of a worker, with its role and, for KV routing, its KV events."""
    flags = model_flags(spec, "model")
    if spec.engine.context_length is not None:
        flags["max-model-len"] = str(spec.engine.context_length)
    if spec.engine.trust_remote_code:
        flags["trust-remote-code"] = None
    flags |= tensor_parallelism(spec, worker, "tensor-parallel-size")
    flags |= _role(worker)
    if worker.kv_events:
        flags["kv-events-config"] = KV_EVENTS
    return command_line(spec, flags, for_command_line("vllm", spec.engine.args))


def _role(worker: Worker) -> Flags:
    if worker.role == "worker":
        return {}
    if worker.runtime >= (1, 0):
        return {"disaggregation-mode": worker.role, "kv-transfer-config": KV_TRANSFER}
    if worker.role == "prefill":
        return {"is-prefill-worker": None}
    return {"is-decode-worker": None} if worker.runtime >= (0, 6) else {}
