"""Command lines of the two kinds of llama.cpp image: AIKit's (LocalAI in front) and llama.cpp's own server."""

from __future__ import annotations

from typing import Final

from kubefoundry_kaito.options import Derived, argv
from kubefoundry_kaito.overrides import LlamaCppServer
from kubefoundry_kaito.vllm import PORT, SERVICE_TARGET
from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec

ADDRESS: Final = f":{PORT}"


def derived(spec: ModelDeploymentSpec, server: LlamaCppServer) -> list[Derived]:
    """The options that fields of the spec give.

    AIKit: LocalAI's `run` (`--address`, `--context-size`), model reference apart. llama-server: llama.cpp
    tools/server/README.md; the address is always stated, because its defaults are 127.0.0.1 and a port that changed.
    """
    if server == "aikit":
        options = [Derived("address", ADDRESS, SERVICE_TARGET, written=False)]
        context = "context-size"
    else:
        options = [
            Derived("host", "0.0.0.0", SERVICE_TARGET),
            Derived("port", str(PORT), SERVICE_TARGET),
        ]
        context = "ctx-size"
        if spec.served_name is not None and spec.model.id is not None:
            options = [
                Derived("hf-repo", spec.model.id, "model.id"),
                Derived("alias", spec.served_name, "model.servedName"),
                *options,
            ]
    if spec.engine.context_length is not None:
        options.append(Derived(context, str(spec.engine.context_length), "engine.contextLength"))
    return options


def command_line(spec: ModelDeploymentSpec, server: LlamaCppServer) -> list[str]:
    """The container's args; its command is the image's own.

    AIKit's runner takes the model as its first argument, `huggingface://org/model`, and hands the rest to LocalAI;
    an AIKit image that holds its model is started with `run` (003 §4.2 example 2; KAITO website/docs/aikit.md).
    The address stands last and in one entry, because older runners read two entries for each option and fail where
    a switch ends the line.
    """
    options = argv(derived(spec, server), spec.engine.args)
    if server == "llama-server":
        return options
    first = "run" if spec.model.source == "custom" else f"huggingface://{spec.model.id}"
    return [first, *options, f"--address={ADDRESS}"]
