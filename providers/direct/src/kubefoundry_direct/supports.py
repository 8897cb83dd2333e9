"""Problems of a ModelDeployment that `direct` cannot serve: a sentence each, with reason and remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubefoundry_direct.engines.known import engine_of
from kubefoundry_direct.names import OPTIONS_ANNOTATION, OWN_KEYS, PORT
from kubefoundry_direct.overrides import overrides_of
from kubefoundry_direct.pod import own_volumes
from kubefoundry_direct.settings import Settings
from kubefoundry_sdk import Deployment, Schema
from kubefoundry_sdk.engine import contradictions, location_problems, repetitions, reserved
from kubefoundry_sdk.pod import label_problems, volume_problems
from kubefoundry_sdk.spec import ModelDeploymentSpec, parse_quantity

LONGEST_NAME: Final = 56
"""The name of its Service has 7 more characters, and 63 at most."""

_DNS_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

TITLE: Final = "Provider direct"

_HARMLESS: Final = ("false", "0.0.0.0", "::")
"""A switch that is off, and the hosts that mean all addresses."""


def supports(deployment: Deployment, schema: Schema | None, settings: Settings) -> list[str]:
    """Return a sentence for each problem; empty if the deployment can be rendered.

    The provider's capabilities cover engine, serving mode and CPU or GPU.
    """
    spec = deployment.spec
    return [
        *_name(deployment.name),
        *_image(spec, settings),
        *location_problems(spec, TITLE),
        *contradictions(engine_of(spec).derived(spec), spec.engine.args),
        *repetitions(engine_of(spec).derived(spec), spec.engine.extra_flags),
        *_elsewhere(spec),
        *_annotation(spec),
        *label_problems(spec.pod_template.metadata.labels, TITLE, (OWN_KEYS,)),
        *_shared_memory(spec),
        *volume_problems(spec, TITLE, own_volumes(spec)),
        *_stated_twice(spec),
        *_grace(spec),
    ]


def _name(name: str) -> Iterator[str]:
    if len(name) > LONGEST_NAME or not _DNS_1035.fullmatch(name):
        yield (
            f"{TITLE} creates a Service NAME-server, where NAME must begin with a letter and have at most "
            f"{LONGEST_NAME} lower-case letters, digits and inner dashes; {name} does not: create it "
            "under another name"
        )


def _image(spec: ModelDeploymentSpec, settings: Settings) -> Iterator[str]:
    if settings.image(spec) is None:
        gpu = spec.resources.gpu.type if spec.resources.gpu and spec.gpu_count else "a CPU"
        yield f"{TITLE} has no default image of {spec.engine.type} for {gpu}: set image"


def _elsewhere(spec: ModelDeploymentSpec) -> Iterator[str]:
    for flag, value in sorted(spec.engine.args.items()):
        if flag in engine_of(spec).elsewhere and value not in _HARMLESS:
            yield (
                f'engine.args "{flag}" is "{value}", but the Service and the probes send HTTP to port {PORT} of the '
                "pod: remove it"
            )
    engine, extra = engine_of(spec), spec.engine.extra_flags
    for written in reserved(engine.elsewhere, extra):
        yield (
            f"engine.extraArgs has the flag {written}, but the Service and the probes send HTTP to port {PORT} of "
            "the pod: remove it"
        )
    for written in reserved(engine.options_flags if engine.options(spec) else (), extra):
        yield f"engine.extraArgs has the flag {written}, which replaces the file with engine.args: remove one"


def _annotation(spec: ModelDeploymentSpec) -> Iterator[str]:
    if OPTIONS_ANNOTATION in spec.pod_template.metadata.annotations:
        yield (
            f"{TITLE} sets pod annotation {OPTIONS_ANNOTATION} itself: remove it from "
            "podTemplate.metadata.annotations"
        )


def _shared_memory(spec: ModelDeploymentSpec) -> Iterator[str]:
    amount = overrides_of(spec).shared_memory
    if amount is None:
        return
    try:
        parse_quantity(amount)
    except ValueError as error:
        yield f"provider.overrides.sharedMemory: {error}"


def _stated_twice(spec: ModelDeploymentSpec) -> Iterator[str]:
    overrides, pod = overrides_of(spec), spec.pod_template.spec
    by_user = "run_as_user" in overrides.model_fields_set
    if overrides.cache_claim in [volume.claim_name for volume in spec.model.storage.claims]:
        yield (
            f"provider.overrides.cacheClaim and model.storage.volumes have the same claim {overrides.cache_claim}, "
            "so pods may never start: remove the override"
        )
    for key, in_overrides, field, in_template in (
        ("imagePullSecrets", overrides.image_pull_secrets, "imagePullSecrets", pod.image_pull_secrets),
        ("runtimeClassName", overrides.runtime_class_name, "runtimeClassName", pod.runtime_class_name),
        ("runAsUser", by_user, "securityContext.runAsUser", "runAsUser" in pod.security_context),
    ):
        if in_overrides and in_template:
            yield f"provider.overrides.{key} and podTemplate.spec.{field} set the same: remove the override"


def _grace(spec: ModelDeploymentSpec) -> Iterator[str]:
    grace, drain = spec.pod_template.spec.termination_grace_period_seconds, overrides_of(spec).drain_seconds
    if grace is not None and grace <= drain:
        yield (
            f"podTemplate.spec.terminationGracePeriodSeconds {grace} ends a pod while it drains for {drain} s: "
            "raise it, or lower provider.overrides.drainSeconds"
        )
