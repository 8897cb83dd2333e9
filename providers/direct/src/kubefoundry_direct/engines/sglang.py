"""`python3 -m sglang.launch_server` (sglang/srt/server_args.py)."""

from __future__ import annotations

from kubefoundry_direct.engines.engine import Engine, address, context, on_hub, served_name, tensor, trust
from kubefoundry_sdk.engine import Derived, argv, for_command_line, loader, model_location
from kubefoundry_sdk.spec import ModelDeploymentSpec


def derived(spec: ModelDeploymentSpec) -> list[Derived]:
    """Return the model, its name, its loader, the address, the context length and the trust in remote code."""
    model = [_model(spec)] if on_hub(spec) else []
    return [
        *model,
        *served_name(spec, "served-model-name"),
        *loader(spec),
        *address(spec),
        *context(spec, "context-length"),
        trust(spec, "trust-remote-code"),
    ]


def _model(spec: ModelDeploymentSpec) -> Derived:
    source = "model.storage.uri" if spec.model.storage.uri else "model.id"
    return Derived("model-path", model_location(spec), source)


def arguments(spec: ModelDeploymentSpec) -> list[str]:
    """Return the command line; a `model` in `engine.args` is left out, because `model-path` names the same model."""
    stated = {
        name: value
        for name, value in for_command_line(spec.engine.type, spec.engine.args).items()
        if not (on_hub(spec) and name == "model")
    }
    return argv([*derived(spec), *tensor(spec, "tensor-parallel-size")], stated, spec.engine.extra_args)


SGLANG = Engine(
    ("python3", "-m", "sglang.launch_server"),
    derived,
    arguments,
    elsewhere=frozenset({"grpc-mode", "smg-grpc-mode", "ssl-certfile", "ssl-keyfile"}),
)
