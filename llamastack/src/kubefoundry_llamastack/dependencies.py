"""Resolves the dependencies of a CR's pods: image, ConfigMaps, ModelDeployments, the tool."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from kubefoundry_llamastack import distribution, model_deployments, names, reasons
from kubefoundry_llamastack.model_deployments import Resolved
from kubefoundry_llamastack.render import ca_bundle
from kubefoundry_llamastack.render.request import Distribution, PodInputs, UserConfig
from kubefoundry_llamastack.snapshot import Obstacle
from kubefoundry_llamastack.stores import Stores, digest_content

CONFIG_KEYS = ("config.yaml", "run.yaml")
"""Keys of a user's ConfigMap that may hold the configuration; the first one present counts."""

ENFORCED = "pod-security.kubernetes.io/enforce"


@dataclass(frozen=True, slots=True)
class Source:
    """The ConfigMap that holds the certificates.

    Attributes:
        config_map: Its name.
        keys: The keys to read, in order.
        is_explicit: Whether the CR names it.
        digest: Digest of its name and of these keys.
    """

    config_map: str
    keys: tuple[str, ...]
    is_explicit: bool
    digest: str


@dataclass(slots=True)
class Dependencies:
    """The dependencies of a CR's pods.

    Attributes:
        obstacles: Reasons not to write the Deployment.
        inputs: The input of the render, None if there are obstacles.
        resolved: The CR's ModelDeployments.
        image_override: Image that the operator's ConfigMap has for the distribution's name.
        user_config_version: Resource version of the user's ConfigMap.
    """

    obstacles: list[Obstacle] = field(default_factory=list)
    inputs: PodInputs | None = None
    resolved: list[Resolved] = field(default_factory=list)
    image_override: str = ""
    user_config_version: str = ""


def ca_source(cr: Distribution, stores: Stores) -> Source | Obstacle | None:
    """Find the ConfigMap with the certificates: the CR's, or the cluster's own if it is in the namespace."""
    tls = cr.spec.server.tls_config
    bundle = tls.ca_bundle if tls else None
    name = bundle.config_map_name if bundle else names.TRUSTED_CA
    live = stores.config_maps.get((cr.namespace, name))
    if live is None:
        return _missing("tlsConfig.caBundle", name, cr) if bundle else None
    keys = tuple((bundle.config_map_keys or [ca_bundle.KEY]) if bundle else ca_bundle.TRUSTED_KEYS)
    digests = "\n".join(f"{key} {live['keys'].get(key, '')}" for key in keys)
    digest = hashlib.sha256(f"{name}\n{digests}".encode()).hexdigest()[:16]
    return Source(name, keys, bundle is not None, digest)


def resolve(
    cr: Distribution,
    stores: Stores,
    config: distribution.OperatorConfig,
    latched: dict[str, str],
    ca_digest: str | None,
    tool: str,
) -> Dependencies:
    """Resolve all dependencies of the CR's pods.

    Args:
        cr: The CR.
        stores: The watched objects.
        config: The operator's ConfigMap.
        latched: Base URLs in the CR's Deployment, by provider id.
        ca_digest: Digest of the mounted certificates, None without any.
        tool: Name of the ConfigMap with this operator's tool.

    Returns:
        The dependencies, with an obstacle for each that is missing.
    """
    result = Dependencies()
    server = cr.spec.server
    image = distribution.image(server.distribution, config)
    if image is None:
        text = distribution.refusal(server.distribution, config)
        result.obstacles.append(Obstacle(reasons.DEPLOYMENT_READY, "DistributionUnknown", text))
    if not server.distribution.image:
        result.image_override = config.images.get(server.distribution.name or "", "")
    user_config = None
    if server.user_config is not None:
        user_config = _user_config(cr, stores, result)
    urls = _endpoints(cr, stores, latched, result)
    if not result.obstacles and image is not None and urls is not None:
        result.inputs = PodInputs(
            image=image,
            user_config=user_config,
            ca_digest=ca_digest,
            endpoints=urls,
            tool=tool,
            restricted=_restricted(stores, cr.namespace),
        )
    return result


def _user_config(cr: Distribution, stores: Stores, result: Dependencies) -> UserConfig | None:
    assert cr.spec.server.user_config is not None
    name = cr.spec.server.user_config.config_map_name
    live = stores.config_maps.get((cr.namespace, name))
    if live is None:
        result.obstacles.append(_missing("userConfig", name, cr))
        return None
    result.user_config_version = live["metadata"]["resourceVersion"]
    key = next((key for key in CONFIG_KEYS if key in live["keys"]), None)
    if key is None and cr.extended:
        text = f"ConfigMap '{name}' has neither the key 'config.yaml' nor 'run.yaml'; put the configuration under one"
        result.obstacles.append(Obstacle(reasons.DEPLOYMENT_READY, "ConfigMapInvalid", text))
        return None
    return UserConfig(key or CONFIG_KEYS[0], digest_content(live))


def _endpoints(
    cr: Distribution, stores: Stores, latched: dict[str, str], result: Dependencies
) -> dict[str, str] | None:
    """Return base URLs by provider id, or None while one is missing: nothing is deployed without it."""
    references = cr.spec.server.model_deployments
    follow = stores.model_deployments
    lookup = None
    if follow.readable:
        lookup = lambda name: follow.objects.get((cr.namespace, name))  # noqa: E731
    result.resolved = model_deployments.resolve(references, cr.namespace, lookup, latched)
    urls = model_deployments.endpoints(result.resolved)
    if urls is None:
        waiting = ", ".join(item.name for item in result.resolved if item.url is None)
        text = f"Waiting for ModelDeployments: {waiting}"
        result.obstacles.append(Obstacle(reasons.DEPLOYMENT_READY, "WaitingForModelDeployments", text))
    return urls


def _restricted(stores: Stores, namespace: str) -> bool:
    live = stores.namespaces.get(("", namespace)) or {"metadata": {}}
    return (live["metadata"].get("labels") or {}).get(ENFORCED) == "restricted"


def _missing(place: str, name: str, cr: Distribution) -> Obstacle:
    text = (
        f"ConfigMap '{name}' of spec.server.{place} does not exist in namespace '{cr.namespace}'; "
        "create it or correct the name"
    )
    return Obstacle(reasons.DEPLOYMENT_READY, "ConfigMapNotFound", text)
