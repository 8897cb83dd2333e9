"""Watches CRs, their children, pods, the ConfigMaps that they name, and ModelDeployments."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from kubefoundry_llamastack import names
from kubefoundry_llamastack.optional_kind import FollowedKind
from kubefoundry_llamastack.ownership import controller_of
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Store

OWN_LABELS = {"labelSelector": f"{names.MANAGED_BY_LABEL}={names.MANAGED_BY}"}
PODS = {"labelSelector": f"app in ({names.APP},{names.PROVIDER_APP})"}
OWN_MANAGERS = frozenset({names.MANAGER})


@dataclass(frozen=True, slots=True)
class Stores:
    """One store for each kind. `children` are the kinds whose names or labels lead to their CR."""

    distributions: Store
    """The CRs, indexed by namespace."""
    children: dict[Kind, Store]
    config_maps: Store
    """All ConfigMaps, as digests of their keys."""
    own_config_maps: Store
    operator_config: Store
    replica_sets: Store
    pods: Store
    namespaces: Store
    anyuid: Store
    """OpenShift's role of that name, if an administrator allows binding it; empty if not."""
    model_deployments: FollowedKind
    definition: FollowedKind
    """The CRD of LlamaStackDistribution itself: an older one drops our fields."""
    successors: FollowedKind
    """OGXServers, which can adopt the children of a LlamaStackDistribution."""

    @property
    def deployments(self) -> Store:
        """Return the store of the CRs' Deployments."""
        return self.children[names.DEPLOYMENTS]

    def distributions_in(self, namespace: str) -> dict[str, Object]:
        """Return the CRs of a namespace, by name."""
        crs = self.distributions.indexed(namespace, namespace=namespace)
        return {live["metadata"]["name"]: live for live in crs}

    def replica_sets_of(self, deployment: Object) -> list[Object]:
        """Return the ReplicaSets whose controller is the Deployment."""
        meta = deployment["metadata"]
        return self.replica_sets.indexed(meta["uid"], namespace=meta["namespace"])


def watch_all(process: Process, changed: Callable[[], None]) -> Stores:
    """Start all watches.

    Args:
        process: The process that runs the watches.
        changed: Called when a CRD is created, changed or deleted.
    """
    kinds = (
        names.DEPLOYMENTS,
        names.SERVICES,
        names.SERVICE_ACCOUNTS,
        names.CLAIMS,
        names.ROLE_BINDINGS,
        names.NETWORK_POLICIES,
        names.INGRESSES,
        names.AUTOSCALERS,
        names.DISRUPTION_BUDGETS,
    )
    return Stores(
        distributions=process.watch(names.LLSD, managers=OWN_MANAGERS, index=namespace_of),
        children={
            kind: process.watch(kind, selector=OWN_LABELS, managers=OWN_MANAGERS, index=owner_uid)
            for kind in kinds
        },
        config_maps=process.watch(
            CONFIG_MAPS, selector={"fieldSelector": "metadata.name!=kube-root-ca.crt"}, trim=reduce_to_digests
        ),
        own_config_maps=process.watch(
            CONFIG_MAPS, selector=OWN_LABELS, managers=OWN_MANAGERS, trim=without_tool
        ),
        operator_config=process.watch(
            CONFIG_MAPS,
            namespace=process.namespace,
            selector={"fieldSelector": f"metadata.name={names.OPERATOR_CONFIG}"},
        ),
        replica_sets=process.watch(names.REPLICA_SETS, selector=PODS, trim=replica_set, index=owner_uid),
        pods=process.watch(names.PODS, selector=PODS, trim=pod, index=owner_uid),
        namespaces=process.watch(names.NAMESPACES, trim=namespace),
        anyuid=process.watch(
            names.CLUSTER_ROLES,
            selector={"fieldSelector": f"metadata.name={names.ANYUID_ROLE}"},
            trim=lambda obj: {"metadata": _short(obj)},
        )
        if process.options.openshift_anyuid
        else Store(),
        model_deployments=FollowedKind(process, MODEL_DEPLOYMENTS, changed, objects=True),
        definition=FollowedKind(process, names.LLSD, changed, objects=False),
        successors=FollowedKind(process, names.OGX_SERVERS, changed, objects=True, required=False),
    )


def owner_uid(obj: Object) -> str | None:
    """Return the uid of the controller, None without one."""
    controller = controller_of(obj)
    return str(controller["uid"]) if controller else None


def namespace_of(obj: Object) -> str:
    """Return the object's namespace."""
    return str(obj["metadata"]["namespace"])


def _short(obj: Object, *more: str) -> Object:
    keys = ("name", "namespace", "uid", "resourceVersion", *more)
    return {key: obj["metadata"][key] for key in keys if key in obj["metadata"]}


def reduce_to_digests(config_map: Object) -> Object:
    """Reduce a ConfigMap to its keys and digests of their content."""
    content = {**(config_map.get("data") or {}), **(config_map.get("binaryData") or {})}
    keys = {key: hashlib.sha256(value.encode()).hexdigest()[:16] for key, value in content.items()}
    return {"metadata": _short(config_map), "keys": keys}


def digest_content(config_map: Object) -> str:
    """Digest all keys of a ConfigMap that `reduce_to_digests` has reduced."""
    text = "\n".join(f"{key} {value}" for key, value in sorted(config_map["keys"].items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def without_tool(config_map: Object) -> Object:
    """Remove the zipapp from our own ConfigMap. It is immutable and 200 KB."""
    return {key: value for key, value in config_map.items() if key != "binaryData"}


def replica_set(obj: Object) -> Object:
    """Reduce a ReplicaSet to its place in the rollout.

    Keeps the volumes of its pods, and its failure to create them.
    """
    template = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    return {
        "metadata": _short(obj, "annotations", "labels", "ownerReferences", "deletionTimestamp"),
        "spec": {
            "replicas": (obj.get("spec") or {}).get("replicas"),
            "template": {"spec": {"volumes": template.get("volumes") or []}},
        },
        "status": {"conditions": (obj.get("status") or {}).get("conditions") or []},
    }


def pod(obj: Object) -> Object:
    """Reduce a pod to its containers' images and its status."""
    containers = [
        {key: item[key] for key in ("name", "image") if key in item}
        for item in (obj.get("spec") or {}).get("containers") or ()
    ]
    return {
        "metadata": _short(obj, "labels", "ownerReferences", "deletionTimestamp"),
        "spec": {"containers": containers},
        "status": obj.get("status") or {},
    }


def namespace(obj: Object) -> Object:
    """Reduce a namespace to its labels."""
    return {"metadata": _short(obj, "labels")}
