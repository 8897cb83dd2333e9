"""Versions that belong together: the kit, the SDK, and the contract that both implement.

The three share their major and minor version, so a kit checks only providers that use the SDK of its own version.
"""

from __future__ import annotations

from importlib import metadata
from typing import Final

KIT: Final = "kubefoundry-conformance"
SDK: Final = "kubefoundry-sdk"


def versions() -> dict[str, str]:
    """Return the versions of kit, SDK and contract by name.

    Raises:
        PackageNotFoundError: The SDK is not installed.
    """
    kit = metadata.version(KIT)
    return {KIT: kit, SDK: metadata.version(SDK), "contract": minor(kit)}


def text() -> str:
    """Return `versions` in one line."""
    return ", ".join(f"{name} {version}" for name, version in versions().items())


def minor(version: str) -> str:
    """Return the first two numbers of a version."""
    return ".".join(version.split(".")[:2])


def mismatch() -> str:
    """Return why this kit cannot check providers with the installed SDK, empty if it can."""
    kit = metadata.version(KIT)
    try:
        sdk = metadata.version(SDK)
    except metadata.PackageNotFoundError:
        return f"{SDK} is not installed: pip install '{SDK}=={minor(kit)}.*'"
    if minor(sdk) == minor(kit):
        return ""
    return (
        f"{KIT} {kit} checks providers that use {SDK} {minor(kit)}, but {SDK} {sdk} is installed: "
        f"pip install '{KIT}=={minor(sdk)}.*'"
    )
