"""`vllm serve` (vllm/entrypoints/cli/serve.py; options: vllm/engine/arg_utils.py, entrypoints/openai/cli_args.py)."""

from __future__ import annotations

from kubefoundry_direct.engines.engine import Engine, context, on_hub, port, served_name, tensor, trust
from kubefoundry_sdk.engine import (
    TENSOR_PARALLEL,
    Derived,
    argv,
    for_command_line,
    loader,
    model_location,
)
from kubefoundry_sdk.spec import ModelDeploymentSpec


def derived(spec: ModelDeploymentSpec) -> list[Derived]:
    """Return the model's name, its loader, the port, the context length and the trust in remote code.

    Without a host vLLM listens on all addresses.
    """
    return [
        *served_name(spec, "served-model-name"),
        *loader(spec),
        port(),
        *context(spec, "max-model-len"),
        trust(spec, "trust-remote-code"),
    ]


def arguments(spec: ModelDeploymentSpec) -> list[str]:
    """Return the command line, with the model first: `vllm serve` only tolerates the model as an option."""
    model = [model_location(spec)] if on_hub(spec) else []
    given = for_command_line(spec.engine.type, spec.engine.args)
    stated = {name: value for name, value in given.items() if not (model and name == "model")}
    return [*model, *argv([*derived(spec), *tensor(spec, TENSOR_PARALLEL)], stated, spec.engine.extra_args)]


VLLM = Engine(
    ("vllm", "serve"),
    derived,
    arguments,
    elsewhere=frozenset({"host", "uds", "headless", "ssl-certfile", "ssl-keyfile"}),
)
