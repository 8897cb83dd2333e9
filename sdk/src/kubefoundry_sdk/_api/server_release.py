"""Reads the release of an API server."""

from __future__ import annotations

import re
from collections.abc import Mapping

Release = tuple[int, int]


def parse(version: Mapping[str, str]) -> Release:
    """Return major and minor release of an API server's `/version`, 0 for a missing number."""
    # Some servers report `28+`.
    major, minor = (int("0" + re.sub(r"\D.*", "", version.get(part, ""))) for part in ("major", "minor"))
    return major, minor
