"""Reads and writes the Secret with the certificate material that all replicas serve with.

Core writes its own Secret, and only reads an existing Secret that `--webhook-secret` names.
"""

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
    bundle, authority_key, leaf, leaf_key = _decoded(secret, "ca.crt", "ca.key", "tls.crt", "tls.key")
    return Material(split_bundle(bundle), authority_key, leaf, leaf_key)


def read_existing(secret: Object) -> Material:
    """Return the certificate material of a Secret that others maintain.

    Intermediate authorities after the leaf join the bundle, so the API server needs no chain.

    Raises:
        Unusable: A part is missing or not base64, or a certificate is not PEM.
    """
    bundle, leaf, leaf_key = _decoded(secret, "ca.crt", "tls.crt", "tls.key")
    return Material((*split_bundle(bundle), *split_bundle(leaf)[1:]), b"", leaf, leaf_key)


def _decoded(secret: Object, *fields: str) -> list[bytes]:
    """Return these fields of the Secret. Raise Unusable if one is missing or not base64."""
    data = secret.get("data") or {}
    try:
        return [base64.b64decode(data[field], validate=True) for field in fields]
    except KeyError as error:
        raise Unusable(f"it has no {error}") from error
    except binascii.Error as error:
        raise Unusable(f"it is not valid base64: {error}") from error


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
