"""Detects the existing operator by its marks, and leaves its objects alone until it is gone.

It overwrites our writes, so two operators would replace pods forever, and its CRD drops our fields. Nothing
shows that it has stopped, so the user reports that with a new value of the refresh annotation (docs:
hand-over).
"""

from __future__ import annotations

from kubefoundry_llamastack import ownership, reasons
from kubefoundry_llamastack.dependencies import drops_our_fields
from kubefoundry_llamastack.memory import Memory
from kubefoundry_llamastack.names import MANAGER
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.snapshot import Obstacle
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.managed_fields import owned

RUNNING = (
    "the existing llama-stack operator still writes to Deployment '{name}', so KubeFoundry changes nothing "
    "until it has stopped: scale its Deployment (llama-stack-k8s-operator-controller-manager) to 0, then annotate "
    f"the LlamaStackDistribution with a new value of {names.REFRESH_ANNOTATION}"
)
OLD_CRD = (
    "the CRD llamastackdistributions.llamastack.io is the existing llama-stack operator's, which drops "
    "externalProviders and modelDeployments; ask an administrator to apply the CRD of KubeFoundry's "
    "sources (kubectl apply --server-side --force-conflicts -k crds/llamastack)"
)


def find_conflict(
    cr: Distribution, live: Object | None, definition: Object | None, memory: Memory
) -> Obstacle | None:
    """Find out whether another operator forbids all writes for the CR now.

    Args:
        cr: The CR.
        live: Its Deployment, None if there is none.
        definition: The CRD in the cluster, None if it is not installed.
        memory: Remembers the refresh annotation at the time of the detection.

    Returns:
        The reason, or None if the operator may write.
    """
    if drops_our_fields(definition):
        return Obstacle(reasons.SOLE_OPERATOR, "OldCRDInstalled", OLD_CRD)
    if live is None or not has_returned(live, cr.name):
        memory.other_operator = None
        return None
    refresh = cr.annotations.get(names.REFRESH_ANNOTATION, "")
    # The value at the time of the detection. A new value is the user's confirmation.
    if memory.other_operator is None:
        memory.other_operator = refresh
    if memory.other_operator != refresh:
        return None
    return Obstacle(reasons.SOLE_OPERATOR, "OldOperatorRunning", RUNNING.format(name=cr.name))


def has_returned(live: Object, cr_name: str) -> bool:
    """Check whether the existing operator applied the Deployment after our adoption.

    The adoption removes all of its marks.
    """
    if owned(live, MANAGER) is None:
        return False
    return any(entry.get("manager") == cr_name for entry in ownership.old_entries(live, cr_name))
