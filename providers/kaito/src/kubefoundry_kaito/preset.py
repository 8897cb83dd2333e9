"""A preset Workspace: KAITO's own vLLM image and command for a model, options through a ConfigMap."""

from __future__ import annotations

from typing import Any, Final

import yaml

from kubefoundry_kaito import vllm
from kubefoundry_kaito.preset_names import is_built_in, preset_name
from kubefoundry_kaito.probe import ANY_MODEL
from kubefoundry_sdk import Deployment, Object, Schema
from kubefoundry_sdk.engine import dashed
from kubefoundry_sdk.spec import ModelDeploymentSpec

CONFIG_KEY: Final = "inference_config.yaml"
"""The key that KAITO reads (api/v1beta1/inference_config_validation.go @v0.12.0)."""

RUNTIME_ANNOTATIONS: Final = {"kaito.sh/runtime": "vllm"}
"""Without it the operator's default decides, which may be transformers."""

CONFIGURABLE: Final = frozenset({"served-model-name", "max-model-len"})
"""Options that fields set and KAITO leaves to the config; it sets model, port and trust itself."""


def inference(deployment: Deployment, schema: Schema) -> dict[str, Any]:
    """Return the section `inference`. `supports` made sure that the model id has a preset."""
    spec = deployment.spec
    preset: dict[str, Any] = {
        "name": preset_name(spec.model.id or "", any_model=ANY_MODEL in schema.features),
    }
    if spec.secrets.hugging_face_token:
        preset["presetOptions"] = {"modelAccessSecret": spec.secrets.hugging_face_token}
    return {"preset": preset, "config": config_name(deployment)}


def config(deployment: Deployment) -> Object:
    """Return the ConfigMap that `inference.config` names.

    KAITO appends each entry to vLLM's command as `--key value`, after its own options, so these win
    (presets/workspace/inference/vllm/inference_api.py @v0.12.0).
    """
    spec = deployment.spec
    options = {option.flag: option.value for option in vllm.derived(spec) if option.flag in CONFIGURABLE}
    stated = {flag: spec.engine.args[flag] for flag in sorted(spec.engine.args) if not _derived(flag, spec)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config_name(deployment)},
        "data": {CONFIG_KEY: as_yaml({"vllm": {**options, **stated}})},
    }


def as_yaml(content: Any) -> str:
    """Return YAML text with the keys in the given order."""
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    return text


def config_name(deployment: Deployment) -> str:
    """Return the ConfigMap's name, without the digest that the runtime adds (`Provider.named_by_content`)."""
    return f"{deployment.name}-inference-config"


def notes(spec: ModelDeploymentSpec) -> tuple[str, ...]:
    """Return notes about choices that KAITO makes itself, whatever the spec requests."""
    sentences = ["A KAITO preset uses every GPU of its node, whatever resources.gpu.count says."]
    if not spec.engine.trust_remote_code and is_built_in(spec.model.id or ""):
        sentences.append(
            "KAITO starts its presets with --trust-remote-code, whatever engine.trustRemoteCode says."
        )
    return tuple(sentences)


def _derived(flag: str, spec: ModelDeploymentSpec) -> bool:
    return dashed(flag) in {option.flag for option in vllm.derived(spec)}
