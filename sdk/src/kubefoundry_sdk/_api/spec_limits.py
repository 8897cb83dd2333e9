"""How deep and how large a spec may be. A schema cannot limit either in a field that allows any content.

Checked before everything else that reads a spec, and without recursion.
"""

from __future__ import annotations

import json
from typing import Any, Final

from kubefoundry_sdk._api.foreign_json import nested

DEPTH: Final = 64
"""Levels of maps and lists; the spec itself is the first."""

SIZE: Final = 128 * 1024
"""Bytes of the spec as JSON. It is stored, compressed, in an annotation of the upstream object together with the
rendered manifest, and all annotations of an object together may have 256 KiB (Kubernetes 1.36,
pkg/apis/core/validation)."""


def too_deep(spec: Any) -> tuple[str, str] | None:
    """Return the path at which a spec is nested deeper than DEPTH, and a message, or None."""
    if not nested(spec, DEPTH):
        return None
    fields = spec.items() if isinstance(spec, dict) else ()
    where = next((f"spec.{name}" for name, value in fields if nested(value, DEPTH - 1)), "spec")
    return where[:200], f"is nested more than {DEPTH} levels deep; use fewer levels"


def too_large(spec: Any) -> tuple[str, str] | None:
    """Return `spec` and a message if the spec is larger than SIZE, or None. It is not nested too deep."""
    size = len(json.dumps(spec, separators=(",", ":"), ensure_ascii=False).encode(errors="replace"))
    if size <= SIZE:
        return None
    return (
        "spec",
        f"may have {SIZE} bytes as JSON, not {size}; put large settings into the image or a ConfigMap",
    )
