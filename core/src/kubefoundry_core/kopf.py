"""A module for kopf: `kopf run --standalone --all-namespaces -m kubefoundry_core.kopf` (docs/kopf.md)."""

from __future__ import annotations

import kubefoundry_sdk.kopf
from kubefoundry_core.main import PROGRAM, prepared

kubefoundry_sdk.kopf.component(PROGRAM, lambda: prepared(arguments=[]))
