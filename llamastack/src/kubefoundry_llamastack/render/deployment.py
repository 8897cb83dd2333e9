"""Renders the Deployment of a CR (sources §5.1)."""

from __future__ import annotations

from typing import Final

from kubefoundry_llamastack import confidential
from kubefoundry_llamastack.names import (
    CA_BUNDLE_HASH,
    DEPLOYMENTS,
    INSTANCE_LABEL,
    USER_CONFIG_HASH,
    endpoint_variable,
    pod_labels,
)
from kubefoundry_llamastack.render import ca_bundle, init, provider_deployment, server, sidecars, tool
from kubefoundry_llamastack.render.containers import last_of_each, with_requests
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings, child
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.pod_status import LAST_WORDS

MOUNT_PATH: Final = "/.llama"
CONFIG_PATH: Final = "/etc/llama-stack/config.yaml"
CA_FOLDER: Final = "/etc/ssl/certs/ca-bundle"
GROUP: Final = 1001
"""Group of the volumes' files, so that a pod with any user can write them."""


def deployment(cr: Distribution, inputs: PodInputs, settings: Settings) -> Object:
    """Render the Deployment to apply, without `replicas`, whose owner depends on the live object.

    Storage needs the strategy Recreate, because its volume attaches to one pod at a time. `rollingUpdate` has
    the API server's own defaults: unowned, it would stay and be rejected next to Recreate.
    """
    strategy: Object = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    if cr.spec.server.storage is not None:
        strategy = {"type": "Recreate"}
    return child(
        DEPLOYMENTS.kind,
        DEPLOYMENTS.api_version,
        cr.name,
        cr,
        spec={
            "selector": {"matchLabels": pod_labels(cr.name)},
            "strategy": strategy,
            "template": _template(cr, inputs, settings),
        },
    )


def _template(cr: Distribution, inputs: PodInputs, settings: Settings) -> Object:
    overrides = cr.spec.server.pod_overrides
    account = overrides.service_account_name if overrides else None
    pod: Object = {
        "serviceAccountName": account or f"{cr.name}-sa",
        "securityContext": _security(inputs),
        "volumes": _volumes(cr, inputs, settings),
        "containers": [_container(cr, inputs), *sidecars.containers(cr, native=inputs.native_sidecars)],
        **_spread(cr),
    }
    if not confidential.mounts_token(cr):
        pod["automountServiceAccountToken"] = False
    if init_containers := init.containers(cr, inputs, settings):
        pod["initContainers"] = [
            *init_containers,
            *sidecars.init_containers(cr, native=inputs.native_sidecars),
        ]
    if overrides and overrides.termination_grace_period_seconds is not None:
        pod["terminationGracePeriodSeconds"] = overrides.termination_grace_period_seconds
    meta: Object = {"labels": pod_labels(cr.name)}
    if annotations := _marks(cr, inputs):
        meta["annotations"] = annotations
    return {"metadata": meta, "spec": pod}


def _marks(cr: Distribution, inputs: PodInputs) -> dict[str, str]:
    """Return digests of the ConfigMaps that the pods read at start, so that new content replaces the pods."""
    annotations = {}
    if inputs.user_config and cr.spec.server.user_config:
        annotations[USER_CONFIG_HASH] = (
            f"{inputs.user_config.digest}-{cr.spec.server.user_config.config_map_name}"
        )
    if inputs.ca_digest:
        annotations[CA_BUNDLE_HASH] = f"{inputs.ca_digest}-{cr.name}-ca-bundle"
    return annotations


def _security(inputs: PodInputs) -> Object:
    context: Object = {"fsGroup": GROUP}
    if inputs.restricted:
        context |= {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return context


def _container(cr: Distribution, inputs: PodInputs) -> Object:
    container_spec = cr.spec.server.container_spec
    container: Object = {
        "name": container_spec.name,
        "image": inputs.image,
        **server.start(cr, inputs.image),
        "ports": [{"containerPort": cr.port, "protocol": "TCP"}],
        "env": environment(cr, inputs),
        "resources": resources(cr),
        "volumeMounts": _mounts(cr, inputs),
        **server.probes(cr),
    }
    if cr.extended and not confidential.has_secrets(cr):
        # With secrets in its variables, the end of the log must not become part of the pod's status.
        container |= LAST_WORDS
    if inputs.restricted:
        container["securityContext"] = init.RESTRICTED
    return container


def environment(cr: Distribution, inputs: PodInputs) -> list[Object]:
    """Return the operator's variables followed by the user's.

    Each name appears once, because an apply with duplicates is rejected. The user's wins, as the last of two
    does in a container.
    """
    own: list[Object] = [{"name": "HF_HOME", "value": mount_path(cr)}]
    if inputs.ca_digest:
        own.append({"name": "SSL_CERT_FILE", "value": f"{CA_FOLDER}/{ca_bundle.KEY}"})
    own += [
        {"name": "LLS_WORKERS", "value": str(cr.spec.server.workers or 1)},
        {"name": "LLS_PORT", "value": str(cr.port)},
        {"name": "LLAMA_STACK_CONFIG", "value": tool.EFFECTIVE if cr.extended else CONFIG_PATH},
    ]
    own += [
        {"name": endpoint_variable(provider_id), "value": url}
        for provider_id, url in inputs.endpoints.items()
    ]
    own += sidecars.server_environment(cr) + provider_deployment.server_environment(cr)
    return last_of_each([*own, *(cr.spec.server.container_spec.env or ())], "name")


def resources(cr: Distribution) -> Object:
    """Return requests and limits.

    Without requests in the CR, they are one CPU for each worker and 1Gi, but never above the limits. With
    `workers` the limits are the same (sources §5.1).
    """
    defaults = {"cpu": str(cr.spec.server.workers or 1), "memory": "1Gi"}
    result = with_requests(cr.spec.server.container_spec.resources, defaults)
    if cr.spec.server.workers is not None:
        result["limits"] = {**result["requests"], **(result.get("limits") or {})}
    return result


def mount_path(cr: Distribution) -> str:
    """Return the path at which the storage is mounted."""
    storage = cr.spec.server.storage
    return (storage.mount_path if storage else None) or MOUNT_PATH


def _mounts(cr: Distribution, inputs: PodInputs) -> list[Object]:
    mounts: list[Object] = [{"name": "lls-storage", "mountPath": mount_path(cr)}]
    if inputs.ca_digest:
        mounts.append({"name": "ca-bundle", "mountPath": CA_FOLDER, "readOnly": True})
    if inputs.user_config and not cr.extended:
        mounts.append({"name": "user-config", "mountPath": "/etc/llama-stack/", "readOnly": True})
    overrides = cr.spec.server.pod_overrides
    user_mounts = (overrides.volume_mounts if overrides else None) or ()
    own_mounts = [*mounts, *init.server_mounts(cr), *sidecars.server_mounts(cr)]
    return last_of_each([*own_mounts, *user_mounts], "mountPath")


def _volumes(cr: Distribution, inputs: PodInputs, settings: Settings) -> list[Object]:
    source: Object = {"emptyDir": {}}
    if cr.spec.server.storage is not None:
        source = {"persistentVolumeClaim": {"claimName": f"{cr.name}-pvc"}}
    volumes: list[Object] = [{"name": "lls-storage", **source}]
    if inputs.ca_digest:
        items = [{"key": ca_bundle.KEY, "path": ca_bundle.KEY}]
        volumes.append({"name": "ca-bundle", "configMap": {"name": f"{cr.name}-ca-bundle", "items": items}})
    if inputs.user_config and cr.spec.server.user_config:
        name = cr.spec.server.user_config.config_map_name
        volumes.append({"name": "user-config", "configMap": {"name": name}})
    overrides = cr.spec.server.pod_overrides
    user_volumes = (overrides.volumes if overrides else None) or ()
    own_volumes = [*volumes, *init.volumes(cr, inputs, settings), *sidecars.volumes(cr)]
    return last_of_each([*own_volumes, *user_volumes], "name")


def _spread(cr: Distribution) -> Object:
    """Spread several pods over regions, zones and nodes, if possible (sources §5.1)."""
    selector = {"matchLabels": {INSTANCE_LABEL: cr.name}}
    constraints = cr.spec.server.topology_spread_constraints
    fields: Object = {}
    if constraints:
        fields["topologySpreadConstraints"] = constraints
    elif cr.spec.replicas > 1:
        fields["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": selector,
            }
            for key in (
                "topology.kubernetes.io/region",
                "topology.kubernetes.io/zone",
                "kubernetes.io/hostname",
            )
        ]
    if cr.spec.replicas > 1:
        term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        preferred = [{"weight": 100, "podAffinityTerm": term}]
        fields["affinity"] = {
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        }
    return fields
