"""Defines the input of a render: the CR and its resolved dependencies. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubefoundry_llamastack.api.spec import Spec
from kubefoundry_llamastack.names import LLSD, labels
from kubefoundry_sdk._api.kinds import Object

PORT = 8321
"""Port of the server if the CR names none (sources §5.1)."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A stored LlamaStackDistribution, typed."""

    name: str
    namespace: str
    uid: str
    generation: int
    spec: Spec
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def port(self) -> int:
        """Return the port of the server, by default the existing operator's."""
        return self.spec.server.container_spec.port or PORT

    @property
    def extended(self) -> bool:
        """Check whether the pod assembles the configuration, for external providers or ModelDeployments."""
        return bool(self.spec.server.model_deployments or self.spec.providers())

    @property
    def served(self) -> bool:
        """Check whether there is a Service.

        The existing operator creates one only for a CR with a port or a variable (sources §5.1). A
        distribution with our providers always has one.
        """
        container = self.spec.server.container_spec
        return bool(container.port or container.env or self.extended)


@dataclass(frozen=True, slots=True)
class Settings:
    """The operator's own configuration.

    Attributes:
        size_limit: Size of the volume with the providers (sources §5.2 "Shared Volume Specification").
        init_resources: Requests and limits of the init containers.
        namespace: The operator's namespace.
        mirror: The registry with copies of the distributions' images; empty for theirs.
        provider_services: Whether providers may have services.
        native_sidecars: Whether a service is an init container that restarts: `auto`, `true` or `false`.
    """

    size_limit: str = "2Gi"
    init_resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    namespace: str = "kubefoundry-system"
    mirror: str = ""
    provider_services: bool = False
    native_sidecars: str = "auto"


@dataclass(frozen=True, slots=True)
class UserConfig:
    """The user's ConfigMap.

    Attributes:
        key: The key that holds the configuration.
        digest: Digest of the ConfigMap's content.
    """

    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class PodInputs:
    """The resolved dependencies of a CR's pods.

    Attributes:
        image: Image of the distribution.
        user_config: The user's ConfigMap, None without any.
        ca_digest: Digest of the mounted certificates, None without any.
        endpoints: Base URL of each ModelDeployment by provider id.
        tool: Name of the ConfigMap with the zipapp.
        restricted: Whether the namespace admits only pods of the Pod Security level `restricted`.
        native_sidecars: Whether a service is an init container that restarts.
    """

    image: str
    user_config: UserConfig | None = None
    ca_digest: str | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict)
    tool: str = ""
    restricted: bool = False
    native_sidecars: bool = False


def child(kind_of: str, api_version: str, name: str, cr: Distribution, **body: object) -> Object:
    """Render an object of the CR, with its labels and its owner."""
    return {
        "apiVersion": api_version,
        "kind": kind_of,
        "metadata": {
            "name": name,
            "namespace": cr.namespace,
            "labels": labels(),
            "ownerReferences": [owner(cr)],
        },
        **body,
    }


def owner(cr: Distribution) -> Object:
    """Render the owner reference of a child."""
    return {
        "apiVersion": LLSD.api_version,
        "kind": LLSD.kind,
        "name": cr.name,
        "uid": cr.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
