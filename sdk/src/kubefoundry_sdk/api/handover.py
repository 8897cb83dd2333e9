"""How providers signal each other that a ModelDeployment can change hands (contract §8)."""

from __future__ import annotations

import re
from typing import Final

from kubefoundry_sdk.api import conditions, names, reasons
from kubefoundry_sdk.api.kinds import Object

_FINALIZER: Final = re.compile(re.escape(names.PREFIX) + r"(?P<provider>.+)-provider")


def holders(deployment: Object) -> list[str]:
    """Providers that hold the ModelDeployment by their finalizer: each may have an object that serves."""
    found = (_FINALIZER.fullmatch(name) for name in deployment["metadata"].get("finalizers") or ())
    return [match["provider"] for match in found if match]


def accepted(deployment: Object) -> bool:
    """Whether the chosen provider has accepted the ModelDeployment at this generation.

    It can serve it, and the API server has stored its objects or accepted them in a dry run. The caller must know
    that these conditions are the chosen provider's: until it has reported, they are the previous one's.
    """
    generation = deployment["metadata"]["generation"]
    said = (deployment.get("status") or {}).get("conditions")
    created = conditions.find(said, reasons.RESOURCE_CREATED) or {}
    return (
        conditions.is_true(said, reasons.PROVIDER_COMPATIBLE, generation=generation)
        and created.get("observedGeneration") == generation
        and (created.get("status") == "True" or created.get("reason") == "WaitingForCleanup")
    )
