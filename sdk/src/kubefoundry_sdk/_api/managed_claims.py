"""Claims that core creates for `spec.model.storage`: their names, and the spec's fields about them.

Core imports no typed models, so these functions read JSON.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubefoundry_sdk._api.untrusted import mappings, part

LONGEST: Final = 63
"""Characters of the longest name. Provisioners put the name into labels and into names of their own objects."""

_DIGEST: Final = 8


def claim_name(model: str, volume: str) -> str:
    """Return the name of the claim for a volume: MODEL-VOLUME. In a longer name, a digest replaces the end."""
    name = f"{model}-{volume}"
    if len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(f"{model}/{volume}".encode()).hexdigest()[:_DIGEST]
    return f"{name[: LONGEST - _DIGEST - 1].rstrip('-.')}-{digest}"


def templates(spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and the claim template of each volume that has one, whatever the spec holds otherwise."""
    for volume in mappings(part({"spec": spec}, "spec", "model", "storage").get("volumes")):
        template = volume.get("claimTemplate")
        if isinstance(template, dict) and isinstance(volume.get("name"), str):
            yield volume["name"], template
