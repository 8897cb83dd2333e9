"""The version of the contract that a provider implements, and the spec fields that each version added (contract §5).

A provider reads the fields that it knows. One of an earlier version would ignore a newer field, and report a model
as serving that serves without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import part

CURRENT: Final = "0.3"
"""The version that this SDK implements."""

SILENT: Final = "0.2"
"""The last version whose providers do not state one."""

PATTERN: Final = r"(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})"

_ADDED: Final[Mapping[str, str]] = {
    "engine.extraArgs": "0.3",
    "podTemplate.spec": "0.3",
    "podTemplate.container": "0.3",
    "model.storage": "0.3",
    "resources.cpuLimit": "0.3",
}
"""The version that added a field of the spec, by the field's path."""

_ENGINE_SELECTED: Final = "0.3"
"""The version from which a spec may leave out `engine.type`."""


def stated(config: Object) -> str:
    """Return the version that a provider states in its InferenceProviderConfig, empty if it states none."""
    return str((config["metadata"].get("annotations") or {}).get(names.CONTRACT_ANNOTATION) or "")


def is_version(text: str) -> bool:
    """Check whether a text is MAJOR.MINOR."""
    return bool(re.fullmatch(PATTERN, text))


def ignored_fields(spec: Mapping[str, Any], version: str) -> str:
    """Return why a provider would ignore fields that the spec sets; empty if it would ignore none.

    Args:
        spec: The spec, with or without its defaults.
        version: The version that the provider states (`stated`).

    Returns:
        The reason with its remedy. It follows the provider's name.
    """
    known = _parsed(version if is_version(version) else SILENT)
    fields = [path for path, added in _ADDED.items() if _parsed(added) > known and _is_set(spec, path)]
    chooses_engine = _parsed(_ENGINE_SELECTED) > known and not _is_set(spec, "engine.type")
    if not fields and not chooses_engine:
        return ""
    if is_version(version):
        claim = f"implements version {version} of the contract"
    else:
        what = f"{version[:20]!r}, which is no version" if version else "no version"
        claim = f"states {what} of the contract, so {SILENT} counts"
    if not fields:
        return (
            f"{claim}, and would not find the selected engine: ask an administrator to upgrade the provider, or set "
            "engine.type"
        )
    return (
        f"{claim}, and would ignore {', '.join(fields)}: ask an administrator to upgrade the provider, or remove the "
        "field"
    )


def _is_set(spec: Mapping[str, Any], path: str) -> bool:
    *parents, name = path.split(".")
    return part(spec, *parents).get(name) not in (None, {}, [])


def _parsed(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)
