"""Renders the certificates that the server trusts as one ConfigMap, from the user's ConfigMap (sources §5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kubefoundry_llamastack import names
from kubefoundry_llamastack.render.request import Distribution, owner
from kubefoundry_sdk._api.kinds import Object

KEY: Final = "ca-bundle.crt"
TRUSTED_KEYS: Final = (KEY, "odh-ca-bundle.crt")
"""Keys that are read from a ConfigMap that the CR does not name; an empty one is skipped."""

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"


class Unusable(ValueError):
    """The certificates are unusable. The text describes why, and what to do."""


def bundle(data: Mapping[str, str], keys: Sequence[str], config_map: str, *, is_explicit: bool) -> str:
    """Return the PEM certificates of these keys, in order. Other blocks and comments are left out.

    Args:
        data: The ConfigMap's data.
        keys: Keys to read.
        config_map: The ConfigMap's name, for messages.
        is_explicit: Whether the CR names the keys. Each must then contain a certificate.

    Raises:
        Unusable: A key or its certificate is missing.
    """
    parts = []
    for key in keys:
        if is_explicit and key not in data:
            raise Unusable(
                f"ConfigMap '{config_map}' has no key '{key}'; add it or change spec.server.tlsConfig.caBundle"
            )
        blocks = list(_blocks(data.get(key, "")))
        if is_explicit and not blocks:
            raise Unusable(f"key '{key}' of ConfigMap '{config_map}' contains no PEM certificate; add one")
        parts += ["".join(f"{block}\n" for block in blocks)] if blocks else []
    return "\n".join(parts)


def _blocks(text: str) -> Iterator[str]:
    """Yield the certificates.

    Looks at each character once: a user's ConfigMap may be a megabyte of beginnings.
    """
    end = 0
    while (begin := text.find(_BEGIN, end)) >= 0:
        end = begin + len(_BEGIN)
        if not text[end : end + 1].isspace():
            continue
        last = text.find(_END, end)
        if last < 0:
            return
        end = last + len(_END)
        yield text[begin:end]


def config_map(cr: Distribution, text: str) -> Object:
    """Render the ConfigMap that is mounted."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{cr.name}-ca-bundle",
            "namespace": cr.namespace,
            "labels": {
                names.COMPONENT_LABEL: "ca-bundle",
                names.INSTANCE_LABEL: cr.name,
                names.MANAGED_BY_LABEL: names.MANAGED_BY,
                names.WATCH_LABEL: "true",
            },
            "ownerReferences": [owner(cr)],
        },
        "data": {KEY: text},
    }
