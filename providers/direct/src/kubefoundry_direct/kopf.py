"""A module for kopf: `kopf run --standalone --all-namespaces -m kubefoundry_direct.kopf` (docs/kopf.md)."""

from __future__ import annotations

import kubefoundry_sdk.kopf
from kubefoundry_direct.provider import NAME, build
from kubefoundry_direct.settings import add_arguments

kubefoundry_sdk.kopf.run(NAME, build, add_arguments)
