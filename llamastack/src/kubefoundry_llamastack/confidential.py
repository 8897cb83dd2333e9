"""Finds secrets that a CR passes to its server.

They are values from Secrets and ConfigMaps, hidden from readers of the CR. The operator does not know them. The
output of a server's container may repeat them.
"""

from __future__ import annotations

from typing import Final

from kubefoundry_llamastack.render.request import Distribution

_MOUNTED: Final = ("secret", "projected", "csi")
"""Kinds of volumes that may hold secrets."""


def list_variables(cr: Distribution) -> list[str]:
    """Return the names of the variables whose values come from a Secret or a ConfigMap."""
    env = cr.spec.server.container_spec.env or ()
    sources = {item.get("name"): item.get("valueFrom") or {} for item in env}
    return [str(name) for name, source in sources.items() if {"secretKeyRef", "configMapKeyRef"} & {*source}]


def find_other_source(cr: Distribution) -> str:
    """Describe another place that may hold secrets, for a message. Empty if there is none."""
    overrides = cr.spec.server.pod_overrides
    for volume in (overrides.volumes if overrides else None) or ():
        if any(volume.get(kind) for kind in _MOUNTED):
            return f"the volume '{volume.get('name')}' may hold secrets"
    return ""


def mounts_token(cr: Distribution) -> bool:
    """Check whether the server may call the Kubernetes API, so that its containers have a ServiceAccount's token.

    The operator's own account has no rights that a provider needs. A CR that names another account needs it.
    """
    overrides = cr.spec.server.pod_overrides
    return not cr.extended or bool(overrides and overrides.service_account_name)


def has_service(cr: Distribution) -> bool:
    """Check whether a provider has a service. The server then holds a token, and may repeat the service's errors."""
    return any(item.service is not None for _, item in cr.spec.providers())


def has_secrets(cr: Distribution) -> bool:
    """Check whether the server's container has secrets, so that its own output must not reach the status."""
    has_token = (cr.extended and mounts_token(cr)) or has_service(cr)
    return bool(list_variables(cr) or find_other_source(cr) or has_token)
