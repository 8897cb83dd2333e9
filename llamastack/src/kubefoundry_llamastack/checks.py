"""Checks a CR before anything is written (sources §5.2)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from kubefoundry_llamastack import service_checks
from kubefoundry_llamastack.names import EXTRACT, MERGE, PROVIDER_SECONDS_ANNOTATION
from kubefoundry_llamastack.render import sidecars, tool
from kubefoundry_llamastack.render.request import Distribution, Settings
from llamastack_providers import layout

RESERVED: Final = frozenset(
    {"lls-storage", "ca-bundle", "user-config", "external-providers", "base-config"}
    | {"config", "effective-config", "provider-tool"}
)
"""Names of the operator's own volumes."""

LABEL: Final = 63
"""Characters of a DNS label."""

LONGEST: Final = 3600
"""The most seconds that may be requested for a provider."""

RESERVED_ID: Final = "remote"
REGISTERING: Final = frozenset(
    {"inference", "safety", "vectorIo", "datasetIo", "scoring", "eval", "toolRuntime"}
)
"""An id of providers with which a server ends at its start, if the API registers objects, such as models, with their
providers (llama-stack 0.7.3, core/routing_tables/common.py)."""

SERVICE_PATHS: Final = (f"{layout.SERVICES}/", f"{layout.TOKENS}/")
PATHS: Final = frozenset({layout.EXTERNAL_PROVIDERS, layout.CONFIG, layout.EFFECTIVE_CONFIG, tool.FOLDER})
"""Paths of the mounts in the server's container."""


def refusal(cr: Distribution, settings: Settings) -> str | None:
    """Return the first problem as what, why and what to do, or None if there is none."""
    problem = next(
        filter(
            None,
            # in the order of the fields: later ones rely on earlier ones
            (
                check(cr)
                for check in (
                    _check_name,
                    _check_deadline,
                    _check_namespaces,
                    _check_ids,
                    _check_reserved_id,
                    _check_model_deployments,
                    _check_size,
                    _check_reserved_names,
                )
            ),
        ),
        None,
    )
    return problem or service_checks.refusal(cr, settings)


def _check_name(cr: Distribution) -> str | None:
    """Check the Service's name, which comes from the CR: a DNS label that begins with a letter (RFC 1035)."""
    service = f"{cr.name}-service"
    if not cr.served or (re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", service) and len(service) <= LABEL):
        return None
    return (
        f"the name '{cr.name}' cannot be used for a Service ('{service}'): it may have at most "
        f"{LABEL - len('-service')} characters, must begin with a letter, and may contain only lower-case letters, "
        "digits and hyphens; create the LlamaStackDistribution with another name"
    )


def _check_deadline(cr: Distribution) -> str | None:
    """Check that the deadline is a number, and no longer than a rollout may take."""
    deadline = cr.annotations.get(PROVIDER_SECONDS_ANNOTATION)
    if deadline is None or (re.fullmatch("[0-9]{1,4}", deadline) and 1 <= int(deadline) <= LONGEST):
        return None
    return (
        f"the annotation {PROVIDER_SECONDS_ANNOTATION} is '{deadline[:40]}' but must be a number of seconds from 1 "
        f"to {LONGEST}; correct or remove it"
    )


def _check_namespaces(cr: Distribution) -> str | None:
    """Check that ConfigMaps are in the CR's namespace, because a pod mounts no others."""
    server = cr.spec.server
    bundle = server.tls_config.ca_bundle if server.tls_config else None
    for place, reference in (("userConfig", server.user_config), ("tlsConfig.caBundle", bundle)):
        if reference and reference.config_map_namespace and reference.config_map_namespace != cr.namespace:
            return (
                f"spec.server.{place} names ConfigMap '{reference.config_map_name}' of namespace "
                f"'{reference.config_map_namespace}', but pods can only use ConfigMaps in their own namespace; "
                f"copy it to '{cr.namespace}' and remove configMapNamespace"
            )
    return None


def _check_ids(cr: Distribution) -> str | None:
    """Check that ids are unique across all APIs (FR-009, FR-020)."""
    first_uses: dict[str, tuple[str, str]] = {}
    for section, item in cr.spec.providers():
        place = f"externalProviders.{section}"
        if item.provider_id in first_uses:
            before, image = first_uses[item.provider_id]
            return (
                f"Provider id '{item.provider_id}' is used twice: in {before} (image: {image}) and in {place} "
                f"(image: {item.image}). Resolution: give one of them another providerId."
            )
        first_uses[item.provider_id] = (place, item.image)
    for deployment in cr.spec.server.model_deployments:
        if deployment.id in first_uses:
            before, image = first_uses[deployment.id]
            first_use = f"{before} (image: {image})" if image else before
            return (
                f"Provider id '{deployment.id}' is used twice: in {first_use} and in modelDeployments "
                f"('{deployment.name}'). Resolution: give one of them another providerId."
            )
        first_uses[deployment.id] = (f"modelDeployments ('{deployment.name}')", "")
    return None


def _check_reserved_id(cr: Distribution) -> str | None:
    places = [
        f"externalProviders.{section}"
        for section, item in cr.spec.providers()
        if section in REGISTERING and item.provider_id == RESERVED_ID
    ]
    places += [
        f"modelDeployments ('{item.name}')"
        for item in cr.spec.server.model_deployments
        if item.id == RESERVED_ID
    ]
    if not places:
        return None
    return (
        f"the provider in {places[0]} has the id '{RESERVED_ID}', with which llama-stack ends at its start; set "
        "another providerId"
    )


def _check_model_deployments(cr: Distribution) -> str | None:
    for item in cr.spec.server.model_deployments:
        if "base_url" in (item.config or {}):
            return (
                f"spec.server.modelDeployments '{item.name}' sets config.base_url, which follows the "
                "ModelDeployment's endpoint; remove it"
            )
    return None


def _check_size(cr: Distribution) -> str | None:
    """Check that the containers' input fits into the Deployment, which stores it."""
    total = 0
    for provider_id, arguments in tool.install(cr).items():
        total += sum(map(len, arguments))
        if total > tool.INPUT_LIMIT:
            return (
                f"the config of the external providers up to '{provider_id}' is too long: together they may take up "
                f"about {tool.INPUT_LIMIT * 3 // 4 // 1024} KiB as JSON; shorten it"
            )
    if sum(map(len, tool.merge(cr, ""))) > tool.INPUT_LIMIT:
        return "the config of all modelDeployments together is too long; shorten it"
    if cr.extended and len(tool.preflight(cr, cr.spec.server.distribution.image or "")) > 1:
        return (
            "the ids and images of the distribution and its external providers are too long for one argument; "
            "use shorter image names or fewer providers"
        )
    return None


def _check_reserved_names(cr: Distribution) -> str | None:
    """Check that the CR uses no name in the pod that is the operator's."""
    if not cr.extended:
        return None
    overrides = cr.spec.server.pod_overrides
    reserved = RESERVED | {item["name"] for item in sidecars.volumes(cr)}
    for volume in (overrides.volumes if overrides else None) or ():
        if volume.get("name") in reserved:
            return (
                f"spec.server.podOverrides.volumes: the name '{volume['name']}' is reserved for the operator; "
                "use another"
            )
    has_services = bool(sidecars.of(cr))
    for field, path in _mounts(cr):
        place = posixpath.normpath(f"/{path.lstrip('/')}")
        if place in PATHS or (has_services and f"{place}/".startswith(SERVICE_PATHS)):
            return f"spec.server.{field}: '{path}' is reserved for the operator; use another"
    if (name := cr.spec.server.container_spec.name) in (EXTRACT, MERGE):
        return f"spec.server.containerSpec.name: '{name}' is reserved for the operator; use another"
    return None


def _mounts(cr: Distribution) -> Iterator[tuple[str, str]]:
    """Yield field and path of each mount that the CR adds to the server's container."""
    overrides, storage = cr.spec.server.pod_overrides, cr.spec.server.storage
    for mount in (overrides.volume_mounts if overrides else None) or ():
        yield "podOverrides.volumeMounts", str(mount.get("mountPath"))
    if storage and storage.mount_path:
        yield "storage.mountPath", storage.mount_path
