"""The existing operator at work beside ours: found by its marks, and left alone until it is gone.

Its writes come back after ours, so two operators would replace pods forever; its CRD loses our fields. Nothing tells
that it has gone: the user says so with a new value of the refresh annotation (docs: hand-over).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubefoundry_llamastack import ownership, reasons
from kubefoundry_llamastack.dependencies import lost_fields
from kubefoundry_llamastack.names import MANAGER
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.report import Obstacle
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.managed_fields import owned
from kubefoundry_sdk.runtime.store import Key

RUNNING = (
    "the existing llama-stack operator still writes to Deployment '{name}'; nothing is changed until it is gone: "
    "scale its Deployment (llama-stack-k8s-operator-controller-manager) to 0, then annotate the "
    f"LlamaStackDistribution with a new value of {names.REFRESH_ANNOTATION}"
)
OLD_CRD = (
    "the CRD llamastackdistributions.llamastack.io is one of the existing llama-stack operator, which loses "
    "externalProviders and modelDeployments; apply KubeFoundry's CRD (kubectl apply --server-side "
    "--force-conflicts -k crds/llamastack)"
)


@dataclass(slots=True)
class Coexistence:
    """At which value of the refresh annotation the existing operator was found, by CR."""

    _found: dict[Key, str] = field(default_factory=dict)

    def stops(self, cr: Distribution, live: Object | None, definition: Object | None) -> Obstacle | None:
        """Why nothing may be written for the CR now."""
        if lost_fields(definition):
            return Obstacle(reasons.SOLE_OPERATOR, "OldCRDInstalled", OLD_CRD)
        key, refresh = (cr.namespace, cr.name), cr.annotations.get(names.REFRESH_ANNOTATION, "")
        if live is None or not returned(live, cr.name):
            self.forget(key)
            return None
        if self._found.setdefault(key, refresh) != refresh:
            return None
        return Obstacle(reasons.SOLE_OPERATOR, "OldOperatorRunning", RUNNING.format(name=cr.name))

    def forget(self, key: Key) -> None:
        self._found.pop(key, None)


def returned(live: Object, cr_name: str) -> bool:
    """Whether the existing operator has applied the Deployment after we took it over: all its marks went then."""
    if owned(live, MANAGER) is None:
        return False
    return any(entry.get("manager") == cr_name for entry in ownership.old_entries(live, cr_name))
