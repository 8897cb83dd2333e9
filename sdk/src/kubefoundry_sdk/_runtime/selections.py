"""The metric of selections (contract §6), which core and selectors count."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter

SELECTIONS: Final = Counter(
    "kubefoundry_provider_selection",
    "Selections written, by provider (empty if none was found) and reason.",
    ["provider", "reason"],
)
"""Core counts the models that name a provider, and a selector its choices. The sum counts all selections."""
