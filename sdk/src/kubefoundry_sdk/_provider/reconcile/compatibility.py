"""Checks whether a provider can serve a deployment: capabilities, overrides, and the provider's own checks.

The texts of the capability checks are those of contract §2, second table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kubefoundry_sdk._api import contract_version, foreign_text
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider import pod_defaults, propagation, results
from kubefoundry_sdk._provider.contract import Deployment, Provider
from kubefoundry_sdk._provider.reconcile import overrides
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.earlier_render import (
    alike,
    earlier_deployment,
    earlier_render,
    earlier_spec,
)


@dataclass(frozen=True, slots=True)
class Compatibility:
    """The result of `check`.

    Attributes:
        problems: Reasons why the provider cannot serve the deployment; empty if it can.
        invalid_overrides: Whether all problems are about overrides.
        warning: One line about override keys that the provider does not know, or None.
    """

    problems: tuple[str, ...]
    invalid_overrides: bool
    warning: str | None


def check(provider: Provider, deployment: Deployment, schema: Schema | None) -> Compatibility:
    """Check whether the provider can serve this deployment; the schema is None while no CRD is installed."""
    values = (deployment.spec.provider.overrides if deployment.spec.provider else None) or {}
    type_problems = overrides.wrong_types(provider.overrides, values)
    warning = _unknown(provider, overrides.unknown_keys(provider.overrides, values))
    problems = capability_problems(provider, deployment.spec)
    if provider.contract != contract_version.CURRENT:
        stated = deployment.spec.model_dump(by_alias=True, exclude_defaults=True)
        if why := contract_version.ignored_fields(stated, provider.contract):
            problems.append(f"{provider.title} {why}")
    if not problems and not type_problems:
        problems = results.supports(provider, deployment, schema)
    return Compatibility((*problems, *type_problems), bool(type_problems) and not problems, warning)


def supports(provider: Provider, deployment: Deployment, schema: Schema | None) -> list[str]:
    """Return every reason why a provider cannot serve a deployment, as `ProviderCompatible` reports it.

    These are the runtime's own checks (capabilities, types of overrides), and the provider's `supports`.
    """
    return list(check(provider, deployment, schema).problems)


def as_written(
    provider: Provider,
    deployment: Deployment,
    schema: Schema | None,
    record: manifest.Record | None,
    live: Object | None,
) -> Provider:
    """Return the provider as it writes the next change of an object.

    It has the settings for pods with which the object was written, unless the object is replaced as a whole. It lacks
    the labels and annotations that wait for the user's next edit or a refresh.

    Args:
        provider: The provider with all settings and keys that the administrator lists.
        deployment: The deployment, with the image that serves (`pinned`).
        schema: The schema of the upstream CRD.
        record: The record of the last apply.
        live: The live main object.
    """
    if record is None:
        return provider
    if record.settings != provider.pod_defaults and (spec := earlier_spec(deployment, record)):
        settings = pod_defaults.trusted(record.settings, provider.pod_defaults, live, spec)
        provider = replace(provider, pod_defaults=settings)
    kept = propagation.without_waiting(provider.propagates, deployment, record.manifest, record.follows)
    if kept == provider.propagates:
        return provider
    reduced = replace(provider, propagates=kept)
    # Between edits, a model that waits costs no further render.
    if earlier_deployment(reduced, deployment, record) is deployment:
        return reduced
    if schema is None or check(reduced, deployment, schema).problems:
        return reduced
    rendered = results.render(reduced, deployment, schema)
    earlier = earlier_render(reduced, deployment, schema, record, rendered)
    return reduced if earlier and alike(earlier, rendered) else provider


def waiting_note(provider: Provider, deployment: Deployment, schema: Schema, main: Object) -> str:
    """Return the sentence about labels and annotations that the main object to write lacks; empty if it has all.

    `provider` has all keys that the administrator lists.
    """
    sentence = propagation.note(main, provider.propagates, deployment)
    if sentence and (problems := results.supports(provider, deployment, schema)):
        return f"{provider.title} will refuse the next edit of the spec: {'; '.join(problems)}"
    return sentence


def capability_problems(provider: Provider, spec: ModelDeploymentSpec) -> list[str]:
    """Return the fields that the provider's capabilities exclude, a sentence each (contract §2)."""
    capabilities = provider.capabilities
    problems = []
    if spec.engine.type not in capabilities.engines:
        problems.append(f"{provider.title} does not support {spec.engine.type} engine")
    if spec.serving.mode not in capabilities.serving_modes:
        problems.append(f"{provider.title} does not support {spec.serving.mode} mode")
    aggregated = spec.serving.mode == "aggregated"
    if aggregated and spec.gpu_count == 0 and not capabilities.cpu_support:
        problems.append(f"{provider.title} requires GPU (set resources.gpu.count > 0)")
    # In disaggregated mode the components always have GPUs (contract §2).
    if (spec.gpu_count > 0 or not aggregated) and not capabilities.gpu_support:
        problems.append(f"{provider.title} does not support GPU (set resources.gpu.count to 0)")
    return problems


def _unknown(provider: Provider, keys: Sequence[str]) -> str | None:
    if not keys:
        return None
    valid_keys = overrides.known_keys(provider.overrides)
    hint = (
        f"{provider.title} supports {', '.join(valid_keys)}"
        if valid_keys
        else f"{provider.title} has no overrides"
    )
    return f"Ignored unknown provider.overrides: {foreign_text.listed(keys)}; {hint}"
