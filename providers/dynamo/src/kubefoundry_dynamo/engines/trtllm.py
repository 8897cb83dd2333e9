"""The command line of `dynamo.trtllm` (sources §2.7, §4.1, §4.4).

An `engine.args` name with a dash is a flag of `dynamo.trtllm`. Any other name is a key of TensorRT-LLM's engine
configuration (`enable_block_reuse`, `kv_cache_config`). All of these keys go into one `--override-engine-args`.
"""

from __future__ import annotations

import json
from typing import Any, Final

from kubefoundry_dynamo.engines.command_line import Worker, command_line, model_flags, tensor_parallelism
from kubefoundry_sdk.engine import typed_value
from kubefoundry_sdk.spec import ModelDeploymentSpec

ROLE_FLAGS: Final = ("disaggregation-mode", "disaggregation-strategy")


def arguments(spec: ModelDeploymentSpec, worker: Worker) -> list[str]:
    """Return the command line of a worker; arguments without a flag of their own go into `--override-engine-args`."""
    flags = model_flags(spec, "model-path")
    if spec.engine.context_length is not None:
        flags["max-seq-len"] = str(spec.engine.context_length)
    flags |= tensor_parallelism(spec, worker, "tensor-parallel-size")
    if worker.role != "worker":
        flags["disaggregation-mode"] = worker.role
    if worker.kv_events:
        newer = worker.runtime >= (1, 4)
        flags["publish-kv-events" if newer else "publish-events-and-metrics"] = None
    configuration = _configuration(spec, worker)
    if configuration:
        flags["override-engine-args"] = json.dumps(configuration, sort_keys=True, separators=(",", ":"))
    args = {name: value for name, value in spec.engine.args.items() if "-" in name}
    return command_line(spec, flags, args)


def _configuration(spec: ModelDeploymentSpec, worker: Worker) -> dict[str, Any]:
    configuration: dict[str, Any] = {}
    if spec.engine.trust_remote_code:
        configuration["trust_remote_code"] = True
    if worker.role != "worker":
        configuration["cache_transceiver_config"] = {"backend": "DEFAULT"}
    if worker.role == "prefill":
        configuration["disable_overlap_scheduler"] = True
    for name, value in spec.engine.args.items():
        if "-" not in name:
            configuration[name] = typed_value(value)
    return configuration
