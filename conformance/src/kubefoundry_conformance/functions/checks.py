"""All checks of a provider's functions."""

from __future__ import annotations

from typing import Final

from kubefoundry_conformance.functions import observing, probing, rendering, supporting

FUNCTIONS: Final = (*probing.CHECKS, *supporting.CHECKS, *rendering.CHECKS, *observing.CHECKS)
