"""The flags that shape a provider's objects: its process publishes them, and the command line reads them.

Without these flags, `kubefoundry plan` would render with the package's defaults instead of the process's values.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk._provider import pod_defaults
from kubefoundry_sdk._provider.propagation import ANNOTATIONS, LABELS

DEFAULT_IMAGES: Final = "default_images"

COMMON: Final = (DEFAULT_IMAGES, LABELS, ANNOTATIONS, *pod_defaults.FLAGS)
"""The common flags that shape objects. All other such flags are the provider's own."""


def started_with(parsed: argparse.Namespace, common_flags: argparse.Namespace) -> dict[str, str]:
    """Return the values that the provider was started with, by flag, without defaults of the common flags.

    Args:
        parsed: The parsed flags.
        common_flags: The common flags with their defaults. All but `COMMON` decide how a process runs, and not which
            objects it writes.
    """
    own = sorted(vars(parsed).keys() - vars(common_flags).keys())
    changed = [name for name in COMMON if getattr(parsed, name) != getattr(common_flags, name)]
    values = {name: _text(getattr(parsed, name)) for name in (*changed, *own)}
    return {flag_of(name): text for name, text in values.items() if text or name in changed}


def flag_of(name: str) -> str:
    """Return the flag of an attribute of the parsed flags."""
    return "--default-image" if name == DEFAULT_IMAGES else "--" + name.replace("_", "-")


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={text}" for key, text in sorted(value.items()))
    # A provider's own flag may be a named tuple, which has a text of its own.
    if type(value) is tuple:
        return ",".join(value)
    if isinstance(value, bool):
        return "true" if value else ""
    return "" if value is None else str(value)
