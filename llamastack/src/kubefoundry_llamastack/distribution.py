"""Reads distribution names and images, and the operator's ConfigMap that overrides them (sources §5.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubefoundry_llamastack.api.spec import Distribution
from kubefoundry_sdk._api import foreign_text, foreign_yaml, formats
from kubefoundry_sdk._api.images import in_registry
from kubefoundry_sdk._api.kinds import Object

IMAGES: Final[dict[str, str]] = {
    name: f"docker.io/llamastack/distribution-{name}:latest"
    for name in ("starter", "remote-vllm", "meta-reference-gpu", "postgres-demo")
}
"""The image that the existing operator runs for a name (sources §5.1)."""

LONGEST: Final = 2**20
"""Characters of a key of the operator's ConfigMap: all that a ConfigMap can have."""

CUSTOM: Final = "custom"
"""activeDistribution of a CR that names an image."""


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """The content of the ConfigMap `llama-stack-operator-config`.

    Attributes:
        images: Image of each overridden distribution name.
        network_policies: Whether CRs have a NetworkPolicy. If it is unreadable, None: existing policies
            stay, because deleting them would open closed servers.
        problems: Unusable parts, for the log.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    network_policies: bool | None = False
    problems: tuple[str, ...] = ()


def read(config_map: Object | None, mirror: str = "") -> OperatorConfig:
    """Read the ConfigMap's keys `image-overrides` and `featureFlags`, both YAML texts.

    `mirror`: the registry with copies of our images, which then override the originals.
    """
    data = (config_map or {}).get("data") or {}
    problems: list[str] = []
    images = {name: in_registry(image, mirror) for name, image in IMAGES.items()} if mirror else {}
    for name, image in _mapping(data, "image-overrides", problems).items():
        if isinstance(image, str) and image and re.fullmatch(formats.IMAGE, image):
            images[str(name)] = image
        else:
            problems.append(
                f"image-overrides: {name!r} has the value {image!r} instead of an image; it is ignored"
            )
    return OperatorConfig(images, _network_policies(data, problems), tuple(problems))


def _network_policies(data: Mapping[str, str], problems: list[str]) -> bool | None:
    before = len(problems)
    flags = _mapping(data, "featureFlags", problems)
    if len(problems) > before:
        return None
    flag = flags.get("enableNetworkPolicy", {})
    enabled = flag.get("enabled", False) if isinstance(flag, dict) else flag
    if not isinstance(flag, dict) or not isinstance(enabled, bool):
        text = f"featureFlags: enableNetworkPolicy.enabled must be true or false, not {str(enabled)[:80]!r}"
        problems.append(f"{text}; NetworkPolicies stay as they are")
        return None
    return enabled


def image(distribution: Distribution, config: OperatorConfig) -> str | None:
    """Return the image to run, or None for an unknown name."""
    if distribution.image:
        return distribution.image
    name = distribution.name or ""
    return config.images.get(name) or IMAGES.get(name)


def status_name(distribution: Distribution) -> str:
    """Return the distribution's name in the status."""
    return CUSTOM if distribution.image else distribution.name or ""


def refusal(distribution: Distribution, config: OperatorConfig) -> str:
    """Describe why there is no image, and what to do."""
    supported = ", ".join(sorted({*IMAGES, *config.images}))
    if not distribution.name:
        return f"spec.server.distribution names neither a distribution nor an image; set one: {supported}"
    name = foreign_text.shown(distribution.name)
    return (
        f"{name}. Distribution name not supported; the known names are {supported}; use one of them, "
        "or set spec.server.distribution.image"
    )


def _mapping(data: Mapping[str, str], key: str, problems: list[str]) -> dict[Any, Any]:
    try:
        value = foreign_yaml.decode(data.get(key, ""), limit=LONGEST)
    except foreign_yaml.Unreadable as error:
        problems.append(f"{key} is ignored, it {error}")
        return {}
    if value is None or isinstance(value, dict):
        return value or {}
    problems.append(f"{key} is not a mapping and is ignored")
    return {}
