"""A module for kopf: `kopf run --standalone --all-namespaces -m kubefoundry_kaito.kopf` (docs/kopf.md)."""

from __future__ import annotations

import kubefoundry_sdk.kopf
from kubefoundry_kaito.provider import NAME, build
from kubefoundry_kaito.settings import add_arguments

kubefoundry_sdk.kopf.run(NAME, build, add_arguments)
