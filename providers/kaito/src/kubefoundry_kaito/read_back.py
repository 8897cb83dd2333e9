"""From a Workspace to the spec of a ModelDeployment: `render` in reverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubefoundry_kaito.preset import CONFIG_KEY
from kubefoundry_kaito.template import SHARED_MEMORY
from kubefoundry_sdk import NotReadable, Object
from kubefoundry_sdk import read_back as common
from kubefoundry_sdk.read_back import UnreadableYaml, decode_yaml
from kubefoundry_sdk.status import part

HUB = "huggingface://"


def read_back(workspace: Object, helpers: Sequence[Object]) -> list[Object]:
    """Return specs that may render to the Workspace. Raise NotReadable if there are none.

    Args:
        workspace: The Workspace.
        helpers: The ConfigMap that `inference.config` names, if any.
    """
    resource, inference = part(workspace, "resource"), part(workspace, "inference")
    preset = part(inference, "preset")
    labels = part(resource, "labelSelector", "matchLabels")
    common_to_all = {"nodeSelector": dict(labels)} if labels else {}
    overrides = {key: resource[key] for key in ("instanceType", "preferredNodes") if resource.get(key)}
    specs = []
    for spec in _preset(inference, helpers) if preset else _template(inference):
        stated = {**overrides, **part(spec, "provider", "overrides")}
        specs.append({**common_to_all, **spec, "provider": {"overrides": stated}})
    return specs


def _preset(inference: Mapping[str, Any], helpers: Sequence[Object]) -> list[Object]:
    """Return the specs that may render to a preset, with `--trust-remote-code` and without.

    A preset names neither engine nor GPUs: it is vLLM, on all GPUs of its node. Some models require the flag.
    """
    name = part(inference, "preset").get("name")
    if not name:
        raise NotReadable("its preset has no name")
    spec = common.from_flags("vllm", {"model": str(name), **_config(helpers)})
    if secret := part(inference, "preset", "presetOptions").get("modelAccessSecret"):
        spec["secrets"] = {"huggingFaceToken": secret}
    plain = {**spec, "resources": {"gpu": {"count": 1}}}
    return [plain, {**plain, "engine": {**spec["engine"], "trustRemoteCode": True}}]


def _config(helpers: Sequence[Object]) -> dict[str, str]:
    for helper in helpers:
        text = part(helper, "data").get(CONFIG_KEY)
        if isinstance(text, str):
            try:
                options = part(decode_yaml(text), "vllm")
            except UnreadableYaml as error:
                raise NotReadable(f"{CONFIG_KEY} of the ConfigMap that it names {error}") from error
            return {str(name): common.text(value) for name, value in options.items()}
    return {}


def _template(inference: Mapping[str, Any]) -> list[Object]:
    template = part(inference, "template")
    pod = part(template, "spec")
    containers = pod.get("containers") or []
    if len(containers) != 1:
        raise NotReadable(f"its pod template has {len(containers)} containers; a ModelDeployment has one")
    [container] = containers
    words = [str(word) for word in container.get("args") or ()]
    rest = {
        **common.pod_fields(container, pod, template.get("metadata"), {SHARED_MEMORY}),
        "resources": common.amounts(container.get("resources")),
    }
    extra = {"extraArgs": extra_words} if (extra_words := common.extra(words)) else {}
    return [{**spec, **rest, "engine": {**spec["engine"], **extra}} for spec in _servers(words)]


def _servers(words: list[str]) -> list[Object]:
    """Return the programs that the command line may be for.

    It is AIKit if the command line says so, else vLLM or llama.cpp's own server.
    """
    options = common.flags(words)
    if words and (words[0] == "run" or words[0].startswith(HUB)):
        return [_aikit(words[0], options)]
    vllm = common.from_flags("vllm", options)
    if file := options.pop("hf-file", None):
        options["hf-repo"] = f"{options.get('hf-repo')}/{file}"
    own_server = {"provider": {"overrides": {"llamacppServer": "llama-server"}}}
    return [vllm, {**common.from_flags("llamacpp", options), **own_server}]


def _aikit(model: str, options: dict[str, str]) -> Object:
    """Return the spec of AIKit's runner, whose LocalAI has other names for two of llama.cpp's options."""
    length = options.pop("context-size", None)
    options.pop("address", None)
    spec = common.from_flags("llamacpp", {} if length is None else {"ctx-size": length})
    if options:
        spec["engine"]["args"] = options
    spec["model"] = {"source": "custom"} if model == "run" else {"id": model.removeprefix(HUB)}
    return spec
