"""References of images, and of their copies in a registry."""

from __future__ import annotations

from typing import Final

OURS: Final = "kubefoundry/"
"""Prefix of the images of our components in manifests."""

REGISTRY: Final = r"^([a-z0-9][a-z0-9._-]*|\[[0-9a-f:]+\])(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*/?$"
"""A registry, with a path or without one."""


def in_registry(image: str, registry: str) -> str:
    """Return the reference of the image's copy in the registry. Return the image if the registry is empty."""
    if not registry:
        return image
    host, slash, rest = image.removeprefix(OURS).partition("/")
    has_host = slash and ("." in host or ":" in host)
    return f"{registry.rstrip('/')}/{rest if has_host else host + slash + rest}"
