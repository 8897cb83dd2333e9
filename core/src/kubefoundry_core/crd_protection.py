"""The webhook configuration that keeps our CRDs while ModelDeployments exist.

Deleting the CRD deletes every ModelDeployment, and `kubectl delete -f install.yaml` deletes the CRD. Core applies
this configuration itself: an object of install.yaml would be deleted by the same command, and a second run of the
command would then delete the models. The CRD owns it, so both are deleted together. It fails closed: without core, it
is unknown whether models exist.
"""

from __future__ import annotations

import base64
from typing import Final
from urllib.parse import urlsplit

from kubefoundry_core.webhook_configurations import VALIDATING
from kubefoundry_sdk._api.kinds import CRDS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.names import MANAGED_BY, MANAGED_BY_LABEL, PROTECTED_LABEL

CONFIGURATION: Final = "kubefoundry-crds"
WEBHOOK: Final = "kubefoundry-crds.kubefoundry.ai"
"""If core does not answer, the API server shows this name, which leads users to CONFIGURATION."""

PATH: Final = "/validate-crd-deletion"


def configuration(core: Object, crd: Object, bundle: bytes) -> Object | None:
    """Return the configuration to apply, or None if core has no webhook or the CRD is being deleted.

    Args:
        core: the validating configuration of core, whose address is used with another path.
        crd: the CRD of ModelDeployments.
        bundle: the authorities that have signed core's certificate, PEM.
    """
    webhooks = core.get("webhooks") or []
    if not webhooks or crd["metadata"].get("deletionTimestamp"):
        return None
    return {
        "apiVersion": VALIDATING.api_version,
        "kind": VALIDATING.kind,
        "metadata": {
            "name": CONFIGURATION,
            "labels": {MANAGED_BY_LABEL: MANAGED_BY},
            "ownerReferences": [
                {
                    "apiVersion": CRDS.api_version,
                    "kind": CRDS.kind,
                    "name": MODEL_DEPLOYMENTS.crd,
                    "uid": crd["metadata"]["uid"],
                }
            ],
        },
        "webhooks": [
            {
                "name": WEBHOOK,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "clientConfig": _address(webhooks[0]["clientConfig"], bundle),
                # A label selects the CRDs. Match conditions, which see the name, came with Kubernetes 1.27.
                "objectSelector": {"matchLabels": {PROTECTED_LABEL: "true"}},
                "rules": [
                    {
                        "apiGroups": [CRDS.group],
                        "apiVersions": [CRDS.version],
                        "resources": [CRDS.plural],
                        "operations": ["DELETE"],
                        "scope": "Cluster",
                    }
                ],
            }
        ],
    }


def _address(core_address: Object, bundle: bytes) -> Object:
    """Return core's client configuration with our path."""
    trusted = {"caBundle": base64.b64encode(bundle).decode()}
    if url := core_address.get("url"):
        return {**trusted, "url": urlsplit(url)._replace(path=PATH).geturl()}
    return {**trusted, "service": {**core_address["service"], "path": PATH}}
