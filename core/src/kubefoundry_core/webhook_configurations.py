"""What the API server trusts: `caBundle` of core's two webhook configurations."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Final

from kubefoundry_core.certificates import Material, trusted_by
from kubefoundry_sdk.api.kinds import Kind, Object

CONFIGURATION: Final = "kubefoundry-core"
"""Name of both configurations."""

MUTATING: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)


def bundle_patch(kind: Kind, configuration: Object, bundle: bytes) -> Object | None:
    """The server-side apply that gives every webhook of the configuration this bundle; None if all have it.

    Name and caBundle alone make a valid apply: `webhooks` is a list-map by name (kube-apiserver 1.36). The resource
    version keeps the apply from making a configuration that has been deleted.
    """
    encoded = base64.b64encode(bundle).decode()
    webhooks = configuration.get("webhooks") or []
    if all(_bundle_text(webhook) == encoded for webhook in webhooks):
        return None
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": configuration["metadata"]["name"],
            "resourceVersion": configuration["metadata"]["resourceVersion"],
        },
        "webhooks": [
            {"name": webhook["name"], "clientConfig": {"caBundle": encoded}} for webhook in webhooks
        ],
    }


def covers(configuration: Object, material: Material, now: datetime) -> bool:
    """Whether every webhook of the configuration trusts the leaf."""
    try:
        bundles = [
            base64.b64decode(_bundle_text(webhook), validate=True)
            for webhook in configuration.get("webhooks") or []
        ]
    except binascii.Error:
        return False
    return all(trusted_by(material, bundle, now) for bundle in bundles)


def _bundle_text(webhook: Object) -> str:
    return (webhook.get("clientConfig") or {}).get("caBundle") or ""
