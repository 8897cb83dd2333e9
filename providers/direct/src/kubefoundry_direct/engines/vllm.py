"""`vllm serve` (vllm/entrypoints/cli/serve.py; options: vllm/engine/arg_utils.py, entrypoints/openai/cli_args.py)."""

from __future__ import annotations

from kubefoundry_direct.engines.engine import Engine, address, context, on_hub, served_name, tensor, trust
from kubefoundry_sdk.api import engine_args
from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk.provider.command_line import Derived, argv


def derived(spec: ModelDeploymentSpec) -> list[Derived]:
    """Without a host it listens on all addresses."""
    return [
        *served_name(spec, "served-model-name"),
        *address(host=None),
        *context(spec, "max-model-len"),
        trust(spec, "trust-remote-code"),
    ]


def arguments(spec: ModelDeploymentSpec) -> list[str]:
    """The model stands first: as an option `vllm serve` only puts up with it."""
    model = [spec.model.id or ""] if on_hub(spec) else []
    told = engine_args.told(spec.engine.type, spec.engine.args)
    stated = {name: value for name, value in told.items() if not (model and name == "model")}
    return [*model, *argv([*derived(spec), *tensor(spec, engine_args.TENSOR)], stated)]


VLLM = Engine(("vllm", "serve"), derived, arguments)
