"""`trtllm-serve` (tensorrt_llm/commands/serve.py), whose options have underscores.

As with every provider, an `engine.args` name with a dash is an option of the server. Any other name is a key of
TensorRT-LLM's configuration, which goes into the file for `--config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kubefoundry_direct.engines.engine import Engine, address, context, on_hub, served_name, tensor, trust
from kubefoundry_sdk.engine import TENSOR_PARALLEL, Derived, argv, for_command_line, typed_value
from kubefoundry_sdk.spec import ModelDeploymentSpec

OPTIONS_FILE: Final = "/etc/kubefoundry/engine/options.yaml"

MODEL: Final = ("model", "model-path")
"""Names under which `engine.args` may repeat the model, which is not an option here."""


def derived(spec: ModelDeploymentSpec) -> list[Derived]:
    """Return the model's name, the address, the context length and the trust in remote code."""
    return [
        *served_name(spec, "served-model-name"),
        *address(spec),
        *context(spec, "max-seq-len"),
        trust(spec, "trust-remote-code"),
    ]


def options(spec: ModelDeploymentSpec) -> Mapping[str, Any]:
    """Return the options of the file: arguments without a dash in their name, which are fields of `LlmArgs`."""
    derived_flags = {*MODEL, *(option.flag for option in derived(spec))}
    return {
        name: typed_value(value)
        for name, value in sorted(spec.engine.args.items())
        if "-" not in name and name.replace("_", "-") not in derived_flags
    }


def arguments(spec: ModelDeploymentSpec) -> list[str]:
    """Return the command line: the model, flags with underscores, and the file of options if there are any."""
    model = [spec.model.id or ""] if on_hub(spec) else []
    file = [Derived("config", OPTIONS_FILE, "engine.args")] if options(spec) else []
    flags_of_spec = [*derived(spec), *tensor(spec, TENSOR_PARALLEL), *file]
    left_out = {*(MODEL if model else ()), *(option.flag for option in flags_of_spec)}
    flags = {
        _underscored(name): value
        for name, value in for_command_line(spec.engine.type, spec.engine.args).items()
        if "-" in name and name not in left_out
    }
    underscored = [replace(option, flag=_underscored(option.flag)) for option in flags_of_spec]
    return [*model, *argv(underscored, flags, spec.engine.extra_args)]


def _underscored(flag: str) -> str:
    return flag.replace("-", "_")


TRTLLM = Engine(
    ("trtllm-serve",), derived, arguments, options, options_flags=("config", "extra-llm-api-options")
)
