"""Core's fields of its two webhook configurations and of the CRDs: trusted authorities, and match conditions."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from kubefoundry_core.certificates import Material, trusted_by
from kubefoundry_sdk._api import server_release
from kubefoundry_sdk._api.kinds import CRDS, Kind, Object
from kubefoundry_sdk._api.names import CREATOR_ANNOTATION

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

_SPEC_CHANGES: Final = (
    "oldObject == null || !has(object.metadata.deletionTimestamp) && "
    "(!has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec)"
)
_HAS_CREATOR: Final = (
    "(has({0}.metadata.annotations) && '" + CREATOR_ANNOTATION + "' in {0}.metadata.annotations)"
)

CONDITIONS: Final[Mapping[str, Object]] = {
    VALIDATING.kind: {"name": "spec-changes", "expression": _SPEC_CHANGES},
    MUTATING.kind: {
        "name": "spec-or-creator-changes",
        "expression": f"{_SPEC_CHANGES} || "
        f"{_HAS_CREATOR.format('oldObject')} && !{_HAS_CREATOR.format('object')}",
    },
}
"""The match condition of the webhooks, by the kind of their configuration.

The first part is equal to `admission.review.Request.decides_spec`. The second part is about a creator that
`admission.creator` keeps. Other changes, such as a finalizer or a label, are admitted anyway, so the API server need
not call core. The call is a third of the cost of such a write.
"""


def evaluates_conditions(version: Mapping[str, str]) -> bool:
    """Check whether an API server of that `/version` evaluates match conditions (by default from 1.28 on).

    Match conditions are not in the manifest, because kubectl refuses a field that an older server does not know.
    """
    return server_release.parse(version) >= (1, 28)


def patch(kind: Kind, configuration: Object, bundle: bytes, *, conditions: bool) -> Object | None:
    """Return the server-side apply that gives every webhook of the configuration this bundle; None if all have it.

    Name and caBundle alone make a valid apply: `webhooks` and `matchConditions` are list-maps by name (kube-apiserver
    1.36). The resource version keeps the apply from recreating a deleted configuration.

    Args:
        kind: The kind of the configuration, validating or mutating.
        configuration: The configuration in the cluster.
        bundle: The trusted authorities, PEM.
        conditions: Whether each webhook also gets the match condition, next to the conditions of others.
    """
    encoded = base64.b64encode(bundle).decode()
    webhooks = configuration.get("webhooks") or []
    condition = CONDITIONS[kind.kind]
    ours: Object = {"matchConditions": [condition]} if conditions else {}
    if all(
        _bundle_text(webhook.get("clientConfig") or {}) == encoded
        and (not conditions or condition in (webhook.get("matchConditions") or ()))
        for webhook in webhooks
    ):
        return None
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": configuration["metadata"]["name"],
            "resourceVersion": configuration["metadata"]["resourceVersion"],
        },
        "webhooks": [
            {"name": webhook["name"], "clientConfig": {"caBundle": encoded}, **ours} for webhook in webhooks
        ],
    }


def conversion_patch(crd: Object, bundle: bytes) -> Object | None:
    """Return the server-side apply that gives the CRD's conversion this bundle; None if it has it or needs none.

    The resource version keeps the apply from adding a bundle to a CRD whose conversion was just switched off.
    """
    encoded = base64.b64encode(bundle).decode()
    if all(_bundle_text(client) == encoded for client in _clients(crd)):
        return None
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {name: crd["metadata"][name] for name in ("name", "resourceVersion")},
        "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": encoded}}}},
    }


def only_conversion(crd: Object) -> Object:
    """Return the CRD without its schemas, which take 100 KB."""
    metadata = {name: crd["metadata"][name] for name in ("name", "resourceVersion")}
    return {"metadata": metadata, "spec": {"conversion": crd["spec"].get("conversion") or {}}}


def covers(configuration: Object, material: Material, now: datetime) -> bool:
    """Check whether the caBundle of every webhook of the configuration or CRD covers the leaf."""
    try:
        bundles = [
            base64.b64decode(_bundle_text(client), validate=True) for client in _clients(configuration)
        ]
    except binascii.Error:
        return False
    return all(trusted_by(material, bundle, now) for bundle in bundles)


def called_hosts(configuration: Object) -> set[str]:
    """Return the hosts that the API server connects to, by URL or by Service."""
    clients = _clients(configuration)
    urls = [client["url"] for client in clients if client.get("url")]
    services = [client["service"] for client in clients if client.get("service")]
    return {host for url in urls if (host := urlsplit(url).hostname)} | {
        f"{service['name']}.{service['namespace']}.svc" for service in services
    }


def _clients(configuration: Object) -> list[Object]:
    """Return the `clientConfig` of each webhook of a configuration, or of a CRD's conversion."""
    conversion = (configuration.get("spec") or {}).get("conversion") or {}
    conversions = [conversion["webhook"]] if conversion.get("strategy") == "Webhook" else []
    webhooks = (configuration.get("webhooks") or []) + conversions
    return [webhook.get("clientConfig") or {} for webhook in webhooks]


def _bundle_text(client: Object) -> str:
    return client.get("caBundle") or ""
