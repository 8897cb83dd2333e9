"""All checks, by the mode in which they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubefoundry_conformance.check import Check
from kubefoundry_conformance.functions import observing, probing, rendering, supporting

FUNCTIONS: Final = (*probing.CHECKS, *supporting.CHECKS, *rendering.CHECKS, *observing.CHECKS)

CHECKS: Final[Mapping[str, Sequence[Check[Any]]]] = {"functions": FUNCTIONS}
