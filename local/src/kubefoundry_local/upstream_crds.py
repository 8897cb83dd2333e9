"""The upstream systems' CRDs for the demo: the real ones next to the checkout, else the project's stand-ins."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubefoundry_local.control_plane import ROOT

RELEASES: Final = {"kaito": "v0.12.0", "dynamo": "v1.0.1", "kuberay": "v1.6.2"}
"""The release of each upstream whose CRD is installed; none of them needs a conversion webhook."""


@dataclass(frozen=True, slots=True)
class UpstreamCRD:
    """label: what it is, for people."""

    provider: str
    file: Path
    label: str


def upstream_crds() -> list[UpstreamCRD]:
    """One for each provider. Looks first in `../shared`, or the directory in KUBEFOUNDRY_SHARED."""
    shared = Path(os.environ.get("KUBEFOUNDRY_SHARED") or ROOT.parent / "shared") / "upstream-crds"
    found = []
    for provider, release in RELEASES.items():
        real = shared / provider / f"{release}.yaml"
        if real.is_file():
            found.append(UpstreamCRD(provider, real, f"{provider} {release}"))
        else:
            standin = ROOT / "simulators" / "crds" / f"{provider}.yaml"
            found.append(UpstreamCRD(provider, standin, f"{provider} (a stand-in)"))
    return found
