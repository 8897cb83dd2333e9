"""The version of the contract that a provider implements, and the spec fields that each version added (contract §5).

A provider reads the fields that it knows. One of an earlier version would ignore a newer field, and report a model
as serving that serves without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object

CURRENT: Final = "0.3"
"""The version that this SDK implements."""

SILENT: Final = "0.2"
"""The last version whose providers do not state one."""

PATTERN: Final = r"(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})"

_ADDED: Final[Mapping[str, str]] = {
    "engine.extraArgs": "0.3",
    "podTemplate.spec": "0.3",
    "podTemplate.container": "0.3",
}
"""The version that added a field of the spec, by the field's path."""


def implemented(config: Object) -> str | None:
    """Return the version that a provider implements by its InferenceProviderConfig, None if it has not reported yet.

    Text that is no version counts as the last one that providers do not state.
    """
    stated = (config["metadata"].get("annotations") or {}).get(names.CONTRACT_ANNOTATION)
    if isinstance(stated, str) and re.fullmatch(PATTERN, stated):
        return stated
    return SILENT if config.get("status") else None


def ignored_fields(spec: Mapping[str, Any], version: str | None) -> str:
    """Return why a provider of this version would ignore fields that the spec sets; empty if it would ignore none.

    The text follows the provider's name. Nothing is known of a provider that has not reported (None).

    Raises:
        ValueError: The version is not MAJOR.MINOR.
    """
    knows = _parsed(version or CURRENT)
    fields = [
        path for path, added in _ADDED.items() if _parsed(added) > knows and _is_set(spec, path.split("."))
    ]
    return (
        f"implements version {version} of the contract, and would ignore {', '.join(fields)}: ask an administrator "
        "to upgrade the provider, or remove the field"
        if fields
        else ""
    )


def _is_set(spec: Mapping[str, Any], steps: Iterable[str]) -> bool:
    value: Any = spec
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value not in (None, {}, [])


def _parsed(version: str) -> tuple[int, int]:
    if not re.fullmatch(PATTERN, version):
        raise ValueError(f"version {version!r} of the contract is not MAJOR.MINOR")
    major, _, minor = version.partition(".")
    return int(major), int(minor)
