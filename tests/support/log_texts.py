"""Texts of log lines that docs/runbooks.md names."""

from __future__ import annotations

from typing import Final

LOG_TEXTS: Final = frozenset(
    {
        "acquiring lease",
        "cannot be read and is skipped",
        "internal error, restarting",
        "reconcile failed",
        "renewing lease",
    }
)
"""The document marks them as code, as it does commands."""
