"""Admission of ModelDeployments: defaults, rules and warnings (contract §2)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from kubefoundry_core.admission.defaulting import patch
from kubefoundry_core.admission.review import Review, allowed, patched, refused, request_of
from kubefoundry_core.decision import not_registered
from kubefoundry_sdk.api import conditions, extent, reasons, validation
from kubefoundry_sdk.api.kinds import Object


def mutate(review: Any) -> Review:
    """Adds the defaults that the CRD has, too, for clusters with an older CRD. Raises Malformed."""
    request = request_of(review)
    if not request.decides_spec:
        return allowed(request)
    spec = request.object.get("spec")
    if not isinstance(spec, dict) or extent.too_deep(spec):
        # The validating webhook, which is called next, reports what is wrong with it.
        return allowed(request)
    operations = list(patch(spec, validation.default(spec), "/spec"))
    if not operations:
        return allowed(request)
    return patched(request, base64.b64encode(json.dumps(operations).encode()))


def validate(review: Any, registered: Mapping[str, Object]) -> Review:
    """Refuses a spec that breaks rules, naming every one. Raises Malformed.

    registered: the InferenceProviderConfigs by name. A problem with the provider only causes a warning, because
        things may be installed in any order.
    """
    request = request_of(review)
    if not request.decides_spec:
        return allowed(request)
    spec = request.object.get("spec", {})
    problems = validation.validate(spec)
    if problems:
        return refused(request, problems)
    return allowed(request, [*validation.warnings(spec), *provider_warnings(spec, registered)])


def provider_warnings(spec: Mapping[str, Any], registered: Mapping[str, Object]) -> list[str]:
    """Problems that the registrations show for `spec.provider.name`, a line each."""
    name = (spec.get("provider") or {}).get("name")
    if not name:
        return []
    config = registered.get(name)
    if config is None:
        return [not_registered(name, registered.keys())]
    upstream = conditions.find((config.get("status") or {}).get("conditions"), reasons.UPSTREAM_READY)
    if upstream is None or upstream.get("status") != "False":
        return []
    if upstream.get("reason") == "CRDNotInstalled":
        return [f"Provider '{name}' CRD not installed in cluster"]
    return [f"Provider '{name}' is not ready: {upstream.get('message', '')}"]
