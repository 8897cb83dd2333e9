"""Detects the existing operator and its successor by their marks, and leaves their objects alone.

It overwrites our writes, so two operators would replace pods forever, and its CRD drops our fields. Nothing
shows that it has stopped, so the user reports that with a new value of the refresh annotation (docs:
hand-over).

The successor adopts children of a LlamaStackDistribution that an OGXServer names. It first scales the Deployment to 0
to free the volume, and then marks what it adopts, so the OGXServer itself has to stop us.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubefoundry_llamastack import names, ownership, reasons
from kubefoundry_llamastack.installed_schema import drops_our_fields
from kubefoundry_llamastack.memory import Memory
from kubefoundry_llamastack.names import MANAGER
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.snapshot import Obstacle
from kubefoundry_sdk._api import names as shared
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._api.managed_fields import owned

RUNNING = (
    "the existing llama-stack operator still writes to Deployment '{name}', so KubeFoundry changes nothing "
    "until it has stopped: scale its Deployment (llama-stack-k8s-operator-controller-manager) to 0, then annotate "
    f"the LlamaStackDistribution with a new value of {shared.REFRESH_ANNOTATION}"
)
OLD_CRD = (
    "the CRD llamastackdistributions.llamastack.io is the existing llama-stack operator's, which drops "
    "externalProviders and modelDeployments; ask an administrator to apply the CRD of KubeFoundry's "
    "sources (kubectl apply --server-side --force-conflicts -k crds/llamastack)"
)
ADOPTS = "OGXServer '{name}' adopts children of this LlamaStackDistribution"
ADOPTED = "{kind} '{name}' was adopted by an OGXServer"
STOPPED = (
    "{cause}, so KubeFoundry changes nothing; delete this LlamaStackDistribution without its children "
    "(--cascade=orphan) once the OGXServer serves. To keep it instead, delete the OGXServer (the Service and the "
    "Ingress that it adopted are deleted with it, and created again), wait until its pods are gone, then remove the "
    f"label {names.ADOPTED_FROM}, or the annotation of that name, from the PersistentVolumeClaim and from other "
    "children that have it"
)


def find_successor(
    cr: Distribution, servers: Iterable[Object], children: Mapping[Kind, Object]
) -> Obstacle | None:
    """Find out whether the existing operator's successor adopts, or has adopted, children of the CR.

    Args:
        cr: The CR.
        servers: The OGXServers of all namespaces.
        children: The live objects with the names of the CR's children. Listed objects do not have their kind.

    Returns:
        The reason, or None if the operator may write.
    """
    for server in servers:
        annotations = server["metadata"].get("annotations") or {}
        if server["metadata"]["namespace"] == cr.namespace and any(
            annotations.get(name) == cr.name for name in names.ADOPTIONS
        ):
            cause = ADOPTS.format(name=server["metadata"]["name"])
            return Obstacle(reasons.SOLE_OPERATOR, "AdoptedBySuccessor", STOPPED.format(cause=cause))
    for kind, child in children.items():
        if _is_adopted(child):
            cause = ADOPTED.format(kind=kind.kind, name=child["metadata"]["name"])
            return Obstacle(reasons.SOLE_OPERATOR, "AdoptedBySuccessor", STOPPED.format(cause=cause))
    return None


def _is_adopted(child: Object) -> bool:
    meta, controller = child["metadata"], ownership.controller_of(child) or {}
    group = str(controller.get("apiVersion")).partition("/")[0]
    return (
        (group, controller.get("kind")) == (names.OGX_SERVERS.group, names.OGX_SERVERS.kind)
        or names.ADOPTED_FROM in (meta.get("labels") or {})
        or names.ADOPTED_FROM in (meta.get("annotations") or {})
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
    refresh = cr.annotations.get(shared.REFRESH_ANNOTATION, "")
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
