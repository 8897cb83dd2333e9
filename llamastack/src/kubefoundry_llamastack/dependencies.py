"""What a CR's pods depend on besides the CR itself: image, ConfigMaps, ModelDeployments, the tool."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from kubefoundry_llamastack import distribution, model_deployments, names, reasons, stores
from kubefoundry_llamastack.model_deployments import Resolved
from kubefoundry_llamastack.render import ca_bundle
from kubefoundry_llamastack.render.request import Distribution, Found, UserConfig
from kubefoundry_llamastack.report import Obstacle
from kubefoundry_llamastack.stores import Stores
from kubefoundry_sdk.api.kinds import Object

CONFIG_KEYS = ("config.yaml", "run.yaml")
"""Keys of a user's ConfigMap that may hold the configuration; the first one present counts."""

ENFORCED = "pod-security.kubernetes.io/enforce"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the certificates come from. given: whether the CR names them."""

    config_map: str
    keys: tuple[str, ...]
    given: bool
    digest: str


@dataclass(slots=True)
class Dependencies:
    """obstacles: what prevents writing the Deployment. found: None in that case."""

    obstacles: list[Obstacle] = field(default_factory=list)
    found: Found | None = None
    resolved: list[Resolved] = field(default_factory=list)
    image_override: str = ""
    user_config_version: str = ""


def ca_source(cr: Distribution, known: Stores) -> Source | Obstacle | None:
    """The ConfigMap with the certificates: the CR's, or the cluster's own if it is in the namespace."""
    tls = cr.spec.server.tls_config
    bundle = tls.ca_bundle if tls else None
    name = bundle.config_map_name if bundle else names.TRUSTED_CA
    live = known.config_maps.get((cr.namespace, name))
    if live is None:
        return _missing("tlsConfig.caBundle", name, cr) if bundle else None
    keys = tuple((bundle.config_map_keys or [ca_bundle.KEY]) if bundle else ca_bundle.TRUSTED_KEYS)
    marks = "\n".join(f"{key} {live['keys'].get(key, '')}" for key in keys)
    digest = hashlib.sha256(f"{name}\n{marks}".encode()).hexdigest()[:16]
    return Source(name, keys, bundle is not None, digest)


def find(
    cr: Distribution,
    known: Stores,
    config: distribution.OperatorConfig,
    latched: dict[str, str],
    ca_digest: str | None,
    tool: str,
) -> Dependencies:
    """What is known for the CR. latched: base URLs in its Deployment, by provider id."""
    made = Dependencies()
    server = cr.spec.server
    image = distribution.image(server.distribution, config)
    if image is None:
        text = distribution.refusal(server.distribution, config)
        made.obstacles.append(Obstacle(reasons.DEPLOYMENT_READY, "DistributionUnknown", text))
    if not server.distribution.image:
        made.image_override = config.images.get(server.distribution.name or "", "")
    user_config = None
    if server.user_config is not None:
        user_config = _user_config(cr, known, made)
    urls = _endpoints(cr, known, latched, made)
    if not made.obstacles and image is not None and urls is not None:
        made.found = Found(
            image=image,
            user_config=user_config,
            ca_digest=ca_digest,
            endpoints=urls,
            tool=tool,
            restricted=_restricted(known, cr.namespace),
        )
    return made


def _user_config(cr: Distribution, known: Stores, made: Dependencies) -> UserConfig | None:
    assert cr.spec.server.user_config is not None
    name = cr.spec.server.user_config.config_map_name
    live = known.config_maps.get((cr.namespace, name))
    if live is None:
        made.obstacles.append(_missing("userConfig", name, cr))
        return None
    made.user_config_version = live["metadata"]["resourceVersion"]
    key = next((key for key in CONFIG_KEYS if key in live["keys"]), None)
    if key is None and cr.extended:
        text = f"ConfigMap '{name}' has neither the key 'config.yaml' nor 'run.yaml'; put the configuration under one"
        made.obstacles.append(Obstacle(reasons.DEPLOYMENT_READY, "ConfigMapInvalid", text))
        return None
    return UserConfig(key or CONFIG_KEYS[0], stores.digest(live))


def _endpoints(
    cr: Distribution, known: Stores, latched: dict[str, str], made: Dependencies
) -> dict[str, str] | None:
    """Base URLs by provider id; None while one is missing, because nothing is deployed without it."""
    references = cr.spec.server.model_deployments
    follow = known.model_deployments
    lookup = None
    if follow.readable:
        lookup = lambda name: follow.objects.get((cr.namespace, name))  # noqa: E731
    made.resolved = model_deployments.resolve(references, cr.namespace, lookup, latched)
    urls = model_deployments.endpoints(made.resolved)
    if urls is None:
        waiting = ", ".join(item.name for item in made.resolved if item.url is None)
        text = f"Waiting for ModelDeployments: {waiting}"
        made.obstacles.append(Obstacle(reasons.DEPLOYMENT_READY, "WaitingForModelDeployments", text))
    return urls


def _restricted(known: Stores, namespace: str) -> bool:
    live = known.namespaces.get(("", namespace)) or {"metadata": {}}
    return (live["metadata"].get("labels") or {}).get(ENFORCED) == "restricted"


def _missing(place: str, name: str, cr: Distribution) -> Obstacle:
    text = (
        f"ConfigMap '{name}' of spec.server.{place} does not exist in namespace '{cr.namespace}'; "
        "create it or correct the name"
    )
    return Obstacle(reasons.DEPLOYMENT_READY, "ConfigMapNotFound", text)


def lost_fields(definition: Object | None) -> bool:
    """Whether the CRD in the cluster is one that drops externalProviders: the existing operator's."""
    if definition is None:
        return False
    for version in definition["spec"]["versions"]:
        if version["name"] != names.LLSD.version:
            continue
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        for step in ("spec", "server"):
            schema = (schema.get("properties") or {}).get(step) or {}
        return "externalProviders" not in (schema.get("properties") or {})
    return False
