"""Digests the inputs of the server's pod template: what the pods depend on, and nothing else of a CR."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from kubefoundry_llamastack.names import PROVIDER_SECONDS_ANNOTATION
from kubefoundry_llamastack.render import provider_deployment
from kubefoundry_llamastack.render.request import Distribution, PodInputs
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import part
from llamastack_providers import service

NOT_IN_TEMPLATE: Final = ("podDisruptionBudget", "autoscaling")
"""Parts of spec.server that no pod template depends on."""


def digest_inputs(
    cr: Distribution,
    pod_inputs: PodInputs,
    image_override: str,
    raw_spec: Object,
    *,
    several: bool = False,
    restricted: bool = False,
) -> str:
    """Digest the inputs of the pod template.

    Args:
        cr: The CR.
        pod_inputs: Its resolved dependencies.
        image_override: The image in the operator's ConfigMap for the distribution's name. The operator's
            default image is not an input.
        raw_spec: The CR's spec as stored.
        several: Only for `earlier_digests`.
        restricted: Only for `earlier_digests`.
    """
    server = {
        key: value for key, value in (raw_spec.get("server") or {}).items() if key not in NOT_IN_TEMPLATE
    }
    server = _without_own_pods(server)
    # A larger claim needs no new pods.
    if isinstance(server.get("storage"), dict):
        server["storage"] = {key: value for key, value in server["storage"].items() if key != "size"}
    parts = {
        "server": server,
        "several": several,
        "image": image_override,
        "userConfig": pod_inputs.user_config.digest if pod_inputs.user_config else "",
        "caBundle": pod_inputs.ca_digest or "",
        "endpoints": dict(pod_inputs.endpoints),
        "restricted": restricted,
        "refresh": cr.annotations.get(names.REFRESH_ANNOTATION, ""),
    }
    if seconds := cr.annotations.get(PROVIDER_SECONDS_ANNOTATION):
        # left out if absent, so that existing digests without it stay the same
        parts["providerSeconds"] = seconds
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _without_own_pods(server: Object) -> Object:
    """Return the part without the fields of services that change only pods of their own."""
    sections = server.get("externalProviders")
    if not isinstance(sections, dict):
        return server
    reduced = {
        section: [_reduced(item) for item in items] if isinstance(items, list) else items
        for section, items in sections.items()
    }
    return {**server, "externalProviders": reduced}


def _reduced(provider: object) -> object:
    own_service = part(provider, "service")
    if not isinstance(provider, dict) or own_service.get("mode") != service.DEPLOYMENT:
        return provider
    kept = {key: own_service[key] for key in provider_deployment.INPUTS if key in own_service}
    return {**provider, "service": kept}


def earlier_digests(
    cr: Distribution, pod_inputs: PodInputs, image_override: str, raw_spec: Object
) -> frozenset[str]:
    """Return all digests of these inputs by operators up to 0.2.0.

    They included whether the CR has several pods, and whether the namespace was `restricted`.
    """
    return frozenset(
        digest_inputs(cr, pod_inputs, image_override, raw_spec, several=several, restricted=restricted)
        for several in (False, True)
        for restricted in (False, True)
    )
