"""The rules of the upstream operators' validating webhooks: KAITO 0.12 as recorded, Dynamo as documented."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from kubefoundry_simulators.dynamo_conversion import CONTAINER, converted
from kubefoundry_simulators.steps import Object, spec

IMMUTABLE: Final = (("resource", "count"), ("resource", "instanceType"), ("resource", "labelSelector"))


CONFIG_KEY: Final = "inference_config.yaml"
LONGEST_CONTEXT: Final = 131_072
"""The context limit of every simulated preset. A real preset has the model's own limit."""


def kaito_refusal(new: Object, old: Object | None, config_maps: Mapping[str, Object]) -> str | None:
    """Return why KAITO refuses a create or an update, or None if it accepts it.

    Args:
        new: The Workspace of the request.
        old: The stored Workspace; None for a create.
        config_maps: The ConfigMap that `inference.config` names, by name, if it exists.
    """
    inference = new.get("inference") or {}
    if "." in new["metadata"]["name"]:
        return _invalid("metadata.name: a lowercase RFC 1123 label must not contain '.'")
    if not inference and not new.get("tuning"):
        return _invalid("Either Inference or Tuning must be specified")
    if inference and ("preset" in inference) == ("template" in inference):
        return _invalid("Exactly one of preset or template must be specified: inference")
    return _config_problem(inference, config_maps) if old is None else _changed_immutable(new, old)


def _changed_immutable(new: Object, old: Object) -> str | None:
    """Return why KAITO refuses an update of these fields, or None if it accepts it."""
    for section, field in IMMUTABLE:
        if (new.get(section) or {}).get(field) != (old.get(section) or {}).get(field):
            return _invalid(f"field is immutable: {section}.{field}")
    inference, before = new.get("inference") or {}, old.get("inference") or {}
    if _preset(inference) != _preset(before):
        return _invalid("field is immutable: inference.preset")
    if ("template" in inference) != ("template" in before):
        return _invalid("field is immutable: inference.template")
    return None


def _config_problem(inference: Mapping[str, Any], config_maps: Mapping[str, Object]) -> str | None:
    """Return why KAITO refuses the current content of the ConfigMap of a new Workspace, or None."""
    config = inference.get("config")
    if not config:
        return None
    if config not in config_maps:
        return _invalid(f"ConfigMap '{config}' specified in 'config' not found: inference.config")
    text = (config_maps[config].get("data") or {}).get(CONFIG_KEY)
    if text is None:
        return _invalid(f"ConfigMap has no key {CONFIG_KEY}: inference.config")
    length = ((yaml.safe_load(text) or {}).get("vllm") or {}).get("max-model-len")
    if length is not None and int(length) > LONGEST_CONTEXT:
        return _invalid(
            f"max-model-len {length} exceeds the model's limit {LONGEST_CONTEXT}: inference.config"
        )
    return None


def dynamo_refusal(new: Object, old: Object | None, *, needs_images: bool) -> str | None:
    """Return why Dynamo refuses a create or an update, or None if it accepts it.

    Args:
        new: The graph of the request, in either version.
        old: The stored graph; None for a create.
        needs_images: Whether each component needs an image with a version as its tag, or `runtimeVersionOverride`.
            Dynamo requires this from 1.4 on.
    """
    new_spec = spec(converted(new, "nvidia.com/v1beta1"))
    components = {component["name"]: component for component in new_spec.get("components") or []}
    if not components:
        return "spec.services: must have at least one service"
    problem = _image_problem(components) if needs_images else None
    return problem or (None if old is None else _changed_topology(new_spec, old))


def _changed_topology(new_spec: Object, old: Object) -> str | None:
    """Return why Dynamo refuses this update of a graph, or None."""
    components = {component["name"] for component in new_spec.get("components") or []}
    old_spec = spec(converted(old, "nvidia.com/v1beta1"))
    names = {component["name"] for component in old_spec.get("components") or []}
    if names != components:
        changed = ", ".join(sorted(names ^ components))
        return f"service topology is immutable and cannot be modified after creation: {changed}"
    if new_spec.get("backendFramework") != old_spec.get("backendFramework"):
        return "spec.backendFramework is immutable and cannot be changed after creation"
    return None


def _image_problem(components: Mapping[str, Any]) -> str | None:
    """Return which component lacks a usable image, and why, or None."""
    for name, component in components.items():
        problem = _image_problem_of(component)
        if problem:
            return f"spec.components[{name}]: {problem}"
    return None


def _image_problem_of(component: Mapping[str, Any]) -> str | None:
    containers = ((component.get("podTemplate") or {}).get("spec") or {}).get("containers") or []
    image = next((item.get("image") for item in containers if item["name"] == CONTAINER), None)
    if not image:
        return "the main container needs an image"
    has_version = re.search(r":v?\d+\.\d+\.\d+[^/@]*(@|$)", image)
    if not has_version and "runtimeVersionOverride" not in component:
        return f"the tag of {image} is no version: runtimeVersionOverride is required"
    return None


def _preset(inference: Mapping[str, Any]) -> Any:
    """Return the preset without the empty objects that the operator itself writes into it."""
    return {name: value for name, value in (inference.get("preset") or {}).items() if value != {}}


def _invalid(text: str) -> str:
    return f"validation failed: {text}"
