"""CRDs of the upstream systems for the demo: real CRDs next to the checkout, or else the project's stand-ins."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubefoundry_local.control_plane import ROOT

RELEASES: Final = {"kaito": "v0.12.0", "dynamo": "v1.0.1", "kuberay": "v1.6.2"}
"""Release of each upstream whose CRD is installed. None of them needs a conversion webhook."""


@dataclass(frozen=True, slots=True)
class UpstreamCRD:
    """An upstream CRD. `label` names its release for people."""

    provider: str
    file: Path
    label: str


def upstream_crds() -> list[UpstreamCRD]:
    """Return a CRD for each provider, from `../shared` or the folder in KUBEFOUNDRY_SHARED if the file exists."""
    shared = Path(os.environ.get("KUBEFOUNDRY_SHARED") or ROOT.parent / "shared") / "upstream-crds"
    crds = []
    for provider, release in RELEASES.items():
        real = shared / provider / f"{release}.yaml"
        if real.is_file():
            crds.append(UpstreamCRD(provider, real, f"{provider} {release}"))
        else:
            standin = ROOT / "dev" / "simulators" / "crds" / f"{provider}.yaml"
            crds.append(UpstreamCRD(provider, standin, f"{provider} (a stand-in)"))
    return crds
