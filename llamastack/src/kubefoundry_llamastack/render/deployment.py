"""The Deployment of a CR (sources §5.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kubefoundry_llamastack import confidential
from kubefoundry_llamastack.names import (
    CA_BUNDLE_HASH,
    DEPLOYMENTS,
    INSTANCE_LABEL,
    USER_CONFIG_HASH,
    endpoint_variable,
    pod_labels,
)
from kubefoundry_llamastack.render import ca_bundle, init, server, tool
from kubefoundry_llamastack.render.request import Distribution, Found, Settings, child
from kubefoundry_sdk.api import quantity
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.pod_status import LAST_WORDS

MOUNT_PATH: Final = "/.llama"
CONFIG_PATH: Final = "/etc/llama-stack/config.yaml"
CA_FOLDER: Final = "/etc/ssl/certs/ca-bundle"
GROUP: Final = 1001
"""Group of the volumes' files, so that a pod with any user can write them."""


def deployment(cr: Distribution, found: Found, settings: Settings) -> Object:
    """The Deployment to apply, without `replicas`: who sets those depends on the live one.

    Strategy Recreate with storage, because its volume attaches to one pod at a time. `rollingUpdate` is set to the
    API server's own defaults: unowned, it would stay and be refused next to Recreate.
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
            "template": _template(cr, found, settings),
        },
    )


def _template(cr: Distribution, found: Found, settings: Settings) -> Object:
    overrides = cr.spec.server.pod_overrides
    account = overrides.service_account_name if overrides else None
    pod: Object = {
        "serviceAccountName": account or f"{cr.name}-sa",
        "securityContext": _security(cr, found),
        "volumes": _volumes(cr, found, settings),
        "containers": [_container(cr, found)],
        **_spread(cr),
    }
    if first := init.containers(cr, found, settings):
        pod["initContainers"] = first
    if overrides and overrides.termination_grace_period_seconds is not None:
        pod["terminationGracePeriodSeconds"] = overrides.termination_grace_period_seconds
    meta: Object = {"labels": pod_labels(cr.name)}
    if marks := _marks(cr, found):
        meta["annotations"] = marks
    return {"metadata": meta, "spec": pod}


def _marks(cr: Distribution, found: Found) -> dict[str, str]:
    """Digests of the ConfigMaps that the pods read at start, so that new content replaces the pods."""
    marks = {}
    if found.user_config and cr.spec.server.user_config:
        marks[USER_CONFIG_HASH] = f"{found.user_config.digest}-{cr.spec.server.user_config.config_map_name}"
    if found.ca_digest:
        marks[CA_BUNDLE_HASH] = f"{found.ca_digest}-{cr.name}-ca-bundle"
    return marks


def _security(cr: Distribution, found: Found) -> Object:
    made: Object = {"fsGroup": GROUP}
    if cr.extended and found.restricted:
        made |= {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return made


def _container(cr: Distribution, found: Found) -> Object:
    given = cr.spec.server.container_spec
    made: Object = {
        "name": given.name,
        "image": found.image,
        **server.start(cr, found.image),
        "ports": [{"containerPort": cr.port, "protocol": "TCP"}],
        "env": environment(cr, found),
        "resources": resources(cr),
        "volumeMounts": _mounts(cr, found),
        **server.probes(cr),
    }
    if cr.extended and not confidential.held(cr):
        # with secrets in its variables, the end of the log must not become part of the pod's status
        made |= LAST_WORDS
    if cr.extended and found.restricted:
        made["securityContext"] = init.RESTRICTED
    return made


def environment(cr: Distribution, found: Found) -> list[Object]:
    """The operator's variables followed by the user's. Each name once, because an apply with duplicates is refused.
    The user's wins, as the last of two does in a container."""
    own: list[Object] = [{"name": "HF_HOME", "value": mount_path(cr)}]
    if found.ca_digest:
        own.append({"name": "SSL_CERT_FILE", "value": f"{CA_FOLDER}/{ca_bundle.KEY}"})
    own += [
        {"name": "LLS_WORKERS", "value": str(cr.spec.server.workers or 1)},
        {"name": "LLS_PORT", "value": str(cr.port)},
        {"name": "LLAMA_STACK_CONFIG", "value": tool.EFFECTIVE if cr.extended else CONFIG_PATH},
    ]
    own += [
        {"name": endpoint_variable(provider_id), "value": url} for provider_id, url in found.endpoints.items()
    ]
    return _last_of_each([*own, *(cr.spec.server.container_spec.env or ())], "name")


def resources(cr: Distribution) -> Object:
    """Requests of one CPU for each worker and 1Gi, if the CR has none, but never above its limits; with `workers` the
    limits are the same (sources §5.1)."""
    given = cr.spec.server.container_spec.resources or {}
    limits = given.get("limits") or {}
    defaults = {
        name: _lower(amount, limits.get(name))
        for name, amount in (("cpu", str(cr.spec.server.workers or 1)), ("memory", "1Gi"))
    }
    made: Object = {**given, "requests": {**defaults, **(given.get("requests") or {})}}
    if cr.spec.server.workers is not None:
        made["limits"] = {**made["requests"], **limits}
    return made


def _lower(amount: str, limit: int | str | None) -> int | str:
    if limit is None:
        return amount
    try:
        return min(amount, limit, key=quantity.parse)
    except ValueError:
        # Not for us to judge: the API server refuses it in its own words.
        return amount


def mount_path(cr: Distribution) -> str:
    """Where the storage is mounted."""
    storage = cr.spec.server.storage
    return (storage.mount_path if storage else None) or MOUNT_PATH


def _mounts(cr: Distribution, found: Found) -> list[Object]:
    made: list[Object] = [{"name": "lls-storage", "mountPath": mount_path(cr)}]
    if found.ca_digest:
        made.append({"name": "ca-bundle", "mountPath": CA_FOLDER, "readOnly": True})
    if found.user_config and not cr.extended:
        made.append({"name": "user-config", "mountPath": "/etc/llama-stack/", "readOnly": True})
    overrides = cr.spec.server.pod_overrides
    given = (overrides.volume_mounts if overrides else None) or ()
    return _last_of_each([*made, *init.server_mounts(cr), *given], "mountPath")


def _volumes(cr: Distribution, found: Found, settings: Settings) -> list[Object]:
    source: Object = {"emptyDir": {}}
    if cr.spec.server.storage is not None:
        source = {"persistentVolumeClaim": {"claimName": f"{cr.name}-pvc"}}
    made: list[Object] = [{"name": "lls-storage", **source}]
    if found.ca_digest:
        items = [{"key": ca_bundle.KEY, "path": ca_bundle.KEY}]
        made.append({"name": "ca-bundle", "configMap": {"name": f"{cr.name}-ca-bundle", "items": items}})
    if found.user_config and cr.spec.server.user_config:
        name = cr.spec.server.user_config.config_map_name
        made.append({"name": "user-config", "configMap": {"name": name}})
    overrides = cr.spec.server.pod_overrides
    given = (overrides.volumes if overrides else None) or ()
    return _last_of_each([*made, *init.volumes(cr, found, settings), *given], "name")


def _spread(cr: Distribution) -> Object:
    """Spreads several pods over regions, zones and nodes, if possible (sources §5.1)."""
    selector = {"matchLabels": {INSTANCE_LABEL: cr.name}}
    given = cr.spec.server.topology_spread_constraints
    made: Object = {}
    if given:
        made["topologySpreadConstraints"] = given
    elif cr.spec.replicas > 1:
        made["topologySpreadConstraints"] = [
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
        made["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return made


def _last_of_each(items: Iterable[Any], key: str) -> list[Any]:
    """The items with unique keys: the last one, in the position of the first."""
    kept: dict[Any, Any] = {}
    for item in items:
        kept[item.get(key)] = item
    return list(kept.values())
