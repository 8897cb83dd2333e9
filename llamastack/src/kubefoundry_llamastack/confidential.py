"""What a CR passes to its server that readers of the CR may not see: values from Secrets and ConfigMaps.

The operator does not know them. Anything that a server's container writes may repeat them.
"""

from __future__ import annotations

from typing import Final

from kubefoundry_llamastack.render.request import Distribution

_MOUNTED: Final = ("secret", "projected", "csi")
"""Kinds of volumes that may hold secrets."""


def variables(cr: Distribution) -> list[str]:
    """Names of the variables whose values come from a Secret or a ConfigMap."""
    given = cr.spec.server.container_spec.env or ()
    sources = {item.get("name"): item.get("valueFrom") or {} for item in given}
    return [str(name) for name, source in sources.items() if {"secretKeyRef", "configMapKeyRef"} & {*source}]


def elsewhere(cr: Distribution) -> str:
    """Where else there may be secrets, for a message; empty if nowhere."""
    overrides = cr.spec.server.pod_overrides
    for volume in (overrides.volumes if overrides else None) or ():
        if any(volume.get(kind) for kind in _MOUNTED):
            return f"the volume '{volume.get('name')}' may hold secrets"
    return ""


def held(cr: Distribution) -> bool:
    """Whether the server's container has anything that must not reach the status through its own words."""
    return bool(variables(cr) or elsewhere(cr))
