"""Reads and writes the Secret with the certificate material that all replicas serve with."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from kubefoundry_core.certificates import Material, Unusable, split_bundle
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import SECRETS, Object

SECRET: Final = "kubefoundry-core-tls"


def read(secret: Object) -> Material:
    """Return the certificate material of the Secret.

    Raises:
        Unusable: A part is missing or not base64, or the authorities are not PEM.
    """
    data = secret.get("data") or {}
    try:
        bundle, authority_key, leaf, leaf_key = (
            base64.b64decode(data[field], validate=True)
            for field in ("ca.crt", "ca.key", "tls.crt", "tls.key")
        )
    except KeyError as error:
        raise Unusable(f"Secret {SECRET} has no {error}") from error
    except binascii.Error as error:
        raise Unusable(f"Secret {SECRET} is not valid base64: {error}") from error
    return Material(split_bundle(bundle), authority_key, leaf, leaf_key)


def filled(material: Material, live: Object | None, namespace: str) -> Object:
    """Return the Secret to create. With a live Secret, return its replacement at the same resource version."""
    data = {
        "ca.crt": material.bundle,
        "ca.key": material.authority_key,
        "tls.crt": material.leaf,
        "tls.key": material.leaf_key,
    }
    encoded = {field: base64.b64encode(value).decode() for field, value in data.items()}
    if live is None:
        return {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {
                "name": SECRET,
                "namespace": namespace,
                "labels": {names.MANAGED_BY_LABEL: names.MANAGED_BY},
            },
            "type": "kubernetes.io/tls",
            "data": encoded,
        }
    # A replace without managedFields keeps them.
    metadata = {name: value for name, value in live["metadata"].items() if name != "managedFields"}
    return {**live, "metadata": metadata, "data": encoded}
