"""The Node, its Lease, and the scheduling of pods on it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Final

from kubefoundry_nodes.kubelet import addresses, status
from kubefoundry_nodes.kubelet.kubelet_client import MANAGER, NODES, KubeletClient
from kubefoundry_sdk._api.kinds import LEASES, PODS, Object

NAME: Final = "pod-runner"
LABELS: Final = {"kubernetes.io/hostname": NAME, "kubernetes.io/os": "linux"}
LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE: Final = 40
EVERY: Final = 10.0
"""Duration of the Lease and interval of renewals, in seconds; those of the kubelet."""


def node() -> Object:
    """Return the Node."""
    amounts = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}
    moment = status.now()
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": moment,
        "lastTransitionTime": moment,
    }
    return {
        "apiVersion": NODES.api_version,
        "kind": NODES.kind,
        "metadata": {"name": NAME, "labels": LABELS},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": addresses.NODE}],
        },
    }


async def keep_alive(client: KubeletClient) -> None:
    """Renew the node's Lease until cancelled."""
    while True:
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": NAME, "namespace": LEASE_NAMESPACE},
            "spec": {
                "holderIdentity": NAME,
                "leaseDurationSeconds": LEASE,
                "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            },
        }
        await client.apply(LEASES, lease, manager=MANAGER)
        await asyncio.sleep(EVERY)


def fits(pod: Object) -> bool:
    """Check whether the nodeSelector of a pod permits this node. Other rules are ignored."""
    selector = pod["spec"].get("nodeSelector") or {}
    return selector.items() <= LABELS.items()


async def schedule(client: KubeletClient, pod: Object) -> None:
    """Bind a pod to the node, or report as kube-scheduler does that it cannot be scheduled."""
    if fits(pod):
        await client.bind(pod, NAME)
        return
    conditions = pod["status"].get("conditions") or ()
    if any(condition["type"] == "PodScheduled" for condition in conditions):
        return
    unmatched = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": f"{unmatched} preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        "lastProbeTime": None,
        "lastTransitionTime": status.now(),
    }
    # A pod that has changed meanwhile is scheduled again by its next event.
    await client.put_status(PODS, pod, {**pod["status"], "conditions": [condition]})
