"""Command lines of the two kinds of llama.cpp image: AIKit's (LocalAI in front) and llama.cpp's own server."""

from __future__ import annotations

from typing import Final

from kubefoundry_kaito.overrides import LlamaCppServer
from kubefoundry_kaito.vllm import PORT, SERVICE_TARGET
from kubefoundry_sdk.engine import Derived, all_addresses, argv, for_command_line
from kubefoundry_sdk.spec import ModelDeploymentSpec

ADDRESS_FLAG: Final = "address"
ADDRESS: Final = f":{PORT}"


def derived(spec: ModelDeploymentSpec, server: LlamaCppServer) -> list[Derived]:
    """Return the options that fields of the spec set.

    AIKit: LocalAI's `run` (`--address`, `--context-size`), without the model reference. llama-server: llama.cpp
    tools/server/README.md; the address is always set, because the defaults are 127.0.0.1 and a port that has changed.
    """
    if server == "aikit":
        options = [Derived(ADDRESS_FLAG, ADDRESS, SERVICE_TARGET)]
        context = "context-size"
    else:
        options = [
            all_addresses(spec.engine.args, SERVICE_TARGET),
            Derived("port", str(PORT), SERVICE_TARGET),
        ]
        context = "ctx-size"
        if spec.served_name is not None and spec.model.id is not None:
            file = file_of(spec)
            repository = spec.model.id.removesuffix(f"/{file}") if file else spec.model.id
            options = [
                Derived("hf-repo", repository, "model.id"),
                *([Derived("hf-file", file, "model.id")] if file else []),
                Derived("alias", spec.served_name, "model.servedName"),
                *options,
            ]
    if spec.engine.context_length is not None:
        options.append(Derived(context, str(spec.engine.context_length), "engine.contextLength"))
    return options


def file_of(spec: ModelDeploymentSpec) -> str | None:
    """Return the path of a file in its repository, if the model's id is `org/repository/path`; else None."""
    parts = (spec.model.id or "").split("/", 2)
    return parts[2] if len(parts) == 3 and all(parts) else None


def command_line(spec: ModelDeploymentSpec, server: LlamaCppServer) -> list[str]:
    """Return the container's args; its command is the image's own.

    AIKit's runner takes the model as its first argument, `huggingface://org/model`, and passes the rest to LocalAI.
    An AIKit image that contains its model is started with `run` (sources §1.2). The address comes last and as one
    entry, because older runners read two entries for each option and fail if a switch ends the line.
    """
    if server == "llama-server":
        args = for_command_line(spec.engine.type, spec.engine.args)
        return argv(derived(spec, server), args, spec.engine.extra_args)
    before = [option for option in derived(spec, server) if option.flag != ADDRESS_FLAG]
    args = {flag: value for flag, value in spec.engine.args.items() if flag != ADDRESS_FLAG}
    first = "run" if spec.model.source == "custom" else f"huggingface://{spec.model.id}"
    return [first, *argv(before, args, spec.engine.extra_args), f"--{ADDRESS_FLAG}={ADDRESS}"]
