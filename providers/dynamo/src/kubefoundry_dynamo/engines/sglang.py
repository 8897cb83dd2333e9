"""The command line of `dynamo.sglang` (sources §2.7, §4.1, §4.3)."""

from __future__ import annotations

from typing import Final

from kubefoundry_dynamo.engines.command_line import Worker, command_line, model_flags, tensor_parallelism
from kubefoundry_sdk.engine import for_command_line
from kubefoundry_sdk.spec import ModelDeploymentSpec

ROLE_FLAGS: Final = ("disaggregation-mode",)
KV_EVENTS: Final = '{"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:5557"}'


def arguments(spec: ModelDeploymentSpec, worker: Worker) -> list[str]:
    """Return the command line of a worker; a role adds the transfer of KV blocks between prefill and decode."""
    flags = model_flags(spec, "model-path")
    if spec.engine.context_length is not None:
        flags["context-length"] = str(spec.engine.context_length)
    if spec.engine.trust_remote_code:
        flags["trust-remote-code"] = None
    flags |= tensor_parallelism(spec, worker, "tp-size")
    if worker.role != "worker":
        flags |= {
            "disaggregation-mode": worker.role,
            "disaggregation-transfer-backend": "nixl",
            "disaggregation-bootstrap-port": "12345",
            "host": "0.0.0.0",
        }
    if worker.kv_events:
        flags["kv-events-config"] = KV_EVENTS
    return command_line(spec, flags, for_command_line("sglang", spec.engine.args))
