"""llama.cpp's `llama-server` (llama.cpp tools/server/README.md, common/arg.cpp).

Its images start the server themselves, and contain it at different paths.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from kubefoundry_direct.engines.engine import Engine, address, context, on_hub, served_name
from kubefoundry_sdk.engine import Derived, argv, for_command_line
from kubefoundry_sdk.spec import ModelDeploymentSpec, parse_quantity

ALL_LAYERS: Final = "999"
"""More layers than any model has: all of them go to the GPU."""


def derived(spec: ModelDeploymentSpec) -> list[Derived]:
    """Return the model, its name, the address and the context length.

    The address is always set: the default host is 127.0.0.1, and the default port has changed.
    """
    model = []
    if on_hub(spec):
        repository, file = split(spec.model.id or "")
        model = [
            Derived("hf-repo", repository, "model.id"),
            *([Derived("hf-file", file, "model.id")] if file else []),
        ]
    return [*model, *served_name(spec, "alias"), *address(spec), *context(spec, "ctx-size")]


def arguments(spec: ModelDeploymentSpec) -> list[str]:
    """Return the command line; it puts all layers on GPUs, and limits the threads to the pod's CPUs."""
    more = []
    if spec.gpu_count and not _states(spec, "gpu-layers"):
        more.append(Derived("gpu-layers", ALL_LAYERS, "resources.gpu.count"))
    cpu, field = spec.resources.cpu, "resources.cpu"
    if cpu is None:
        cpu, field = spec.resources.cpu_limit, "resources.cpuLimit"
    if cpu is not None and not _states(spec, "threads"):
        # By default the server starts one thread for each core of the node. The threads spin, so more of them than
        # the pod's CPUs are very slow. 0 threads mean that default.
        cores = max(1, ceil(parse_quantity(cpu)))
        more.append(Derived("threads", str(cores), field))
    args = for_command_line(spec.engine.type, spec.engine.args)
    return argv([*derived(spec), *more], args, spec.engine.extra_args)


def _states(spec: ModelDeploymentSpec, flag: str) -> bool:
    return flag in spec.engine.args or flag in spec.engine.extra_flags


def split(model_id: str) -> tuple[str, str | None]:
    """Return repository and file of `org/repository/path.gguf`; without a path the server picks a file."""
    parts = model_id.split("/", 2)
    if len(parts) == 3 and all(parts):
        return "/".join(parts[:2]), parts[2]
    return model_id, None


LLAMACPP = Engine(
    (),
    derived,
    arguments,
    shared_memory=False,
    elsewhere=frozenset({"api-prefix", "ssl-cert-file", "ssl-key-file"}),
)
