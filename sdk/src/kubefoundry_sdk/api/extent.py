"""How deep and how large a spec may be. A schema cannot say either where it lets any content stand.

Checked before everything else that reads a spec, and without recursion.
"""

from __future__ import annotations

import json
from typing import Any, Final

from kubefoundry_sdk.api.foreign_json import nested

DEPTH: Final = 64
"""Levels of maps and lists, the spec itself being the first."""

SIZE: Final = 128 * 1024
"""Bytes of the spec as JSON. It stands, compressed, in an annotation of the upstream object beside what was rendered
from it, and all annotations of an object together may have 256 KiB (Kubernetes 1.36, pkg/apis/core/validation)."""


def too_deep(spec: Any) -> tuple[str, str] | None:
    """Where a spec is nested deeper than DEPTH, and that it is."""
    if not nested(spec, DEPTH):
        return None
    fields = spec.items() if isinstance(spec, dict) else ()
    where = next((f"spec.{name}" for name, value in fields if nested(value, DEPTH - 1)), "spec")
    return where[:200], f"is nested more than {DEPTH} levels deep; state it flatter"


def too_large(spec: Any) -> tuple[str, str] | None:
    """That a spec, not nested too deep, is larger than SIZE."""
    size = len(json.dumps(spec, separators=(",", ":"), ensure_ascii=False).encode(errors="replace"))
    if size <= SIZE:
        return None
    return (
        "spec",
        f"may have {SIZE} bytes as JSON, not {size}; put large settings into the image or a ConfigMap",
    )
