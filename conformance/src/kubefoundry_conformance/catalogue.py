"""All checks by mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubefoundry_conformance.check import Check
from kubefoundry_conformance.cluster.checks import PROVIDER, SELECTOR
from kubefoundry_conformance.functions.checks import FUNCTIONS

CHECKS: Final[Mapping[str, Sequence[Check[Any]]]] = {
    "functions": FUNCTIONS,
    "control plane": PROVIDER,
    "selector": SELECTOR,
}
