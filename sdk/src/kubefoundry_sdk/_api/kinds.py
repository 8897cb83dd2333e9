"""Kinds: how to address an API resource, and the kinds that every component uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk._api import names

Object = dict[str, Any]
"""A Kubernetes object as the API server sends it (JSON)."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A served version of a resource. `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    built_in: bool = False
    """Whether Kubernetes itself serves it, without a CRD. Others use such a kind, too, so we watch only our own
    objects, by their labels."""

    @property
    def api_version(self) -> str:
        """Return group and version as `apiVersion` has them; only the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def crd(self) -> str:
        """Return the name of the CustomResourceDefinition that serves the kind."""
        return f"{self.plural}.{self.group}"


MODEL_DEPLOYMENTS: Final = Kind(names.GROUP, names.VERSION, names.MODEL_DEPLOYMENTS, names.MODEL_DEPLOYMENT)
PROVIDER_CONFIGS: Final = Kind(
    names.GROUP, names.VERSION, names.PROVIDER_CONFIGS, names.PROVIDER_CONFIG, namespaced=False
)
CRDS: Final = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
DEPLOYMENTS: Final = Kind("apps", "v1", "deployments", "Deployment", built_in=True)
LEASES: Final = Kind("coordination.k8s.io", "v1", "leases", "Lease")
CONFIG_MAPS: Final = Kind("", "v1", "configmaps", "ConfigMap", built_in=True)
NAMESPACES: Final = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
PODS: Final = Kind("", "v1", "pods", "Pod")
SERVICES: Final = Kind("", "v1", "services", "Service", built_in=True)
CLAIMS: Final = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", built_in=True)
HELPER_KINDS: Final[Mapping[str, Kind]] = {kind.kind: kind for kind in (CONFIG_MAPS, SERVICES, CLAIMS)}
"""Kinds of objects that a provider may render next to its own."""
SECRETS: Final = Kind("", "v1", "secrets", "Secret")
WORKLOADS: Final = Kind("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
"""What Kueue counts: an object, or a pod, that waits in a queue or has its quota."""
CORE_EVENTS: Final = Kind("", "v1", "events", "Event")
EVENTS: Final = Kind("events.k8s.io", "v1", "events", "Event")
