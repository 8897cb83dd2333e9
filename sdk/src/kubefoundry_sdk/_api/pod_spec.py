"""The part of a pod's spec, and of the engine's container, that a ModelDeployment can set.

A field that lets a pod reach its node or another namespace is absent: host namespaces, `hostPath` and other volumes
of the node, privileged containers, added capabilities, `nodeName`, further containers. The values stay JSON, because
providers pass them on unchanged.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.fields import MAX_INT32, ApiModel, ItemsLike, Like
from kubefoundry_sdk._api.pods import ObjectName
from kubefoundry_sdk._api.scheduling import Affinity, TopologySpreadConstraint
from kubefoundry_sdk._api.security_context import LIST, ContainerSecurityContext, PodSecurityContext
from kubefoundry_sdk._api.volumes import PartName, Volume, VolumeMount


def _by(*keys: str, most: int) -> Any:
    """Return the marks of a list whose items have these fields as their key."""
    extra: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return Field(max_length=most, json_schema_extra=extra)


class PullSecret(ApiModel):
    """A Secret with credentials of an image registry."""

    name: ObjectName
    """Name of the Secret, in the namespace of the ModelDeployment."""


class DnsOption(ApiModel):
    """An option of the DNS resolver."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """Name of the option, for example ndots."""

    value: Annotated[str, Field(max_length=63)] | None = None
    """Value of the option."""


class DnsConfig(ApiModel):
    """Settings of the DNS resolver, in addition to those of the cluster."""

    nameservers: (
        Annotated[
            list[Annotated[str, Field(max_length=45, pattern=formats.IP)]],
            Field(min_length=1, max_length=3, json_schema_extra=LIST),
        ]
        | None
    ) = None
    """IP addresses of further DNS servers."""

    searches: (
        Annotated[list[ObjectName], Field(min_length=1, max_length=32, json_schema_extra=LIST)] | None
    ) = None
    """Further domains in which names are looked up."""

    options: Annotated[list[DnsOption], Field(min_length=1, max_length=16, json_schema_extra=LIST)] | None = (
        None
    )
    """Options of the resolver."""


class ResourceClaim(ApiModel):
    """Devices of the pods (dynamic resource allocation). Exactly one of the two references must be set."""

    name: PartName
    """Name by which the container refers to the claim."""

    resource_claim_name: ObjectName | None = None
    """ResourceClaim of the namespace, which all pods share."""

    resource_claim_template_name: ObjectName | None = None
    """ResourceClaimTemplate of the namespace, from which each pod gets a claim."""


class ContainerClaim(ApiModel):
    """A claim that the engine's container uses."""

    name: PartName
    """Name of an entry in `podTemplate.spec.resourceClaims`."""


class PodSpec(ApiModel):
    """Settings of the pods, as in a Kubernetes pod."""

    image_pull_secrets: Annotated[list[dict[str, Any]], ItemsLike(PullSecret), _by("name", most=16)] = Field(
        default_factory=list
    )
    """Secrets with credentials of image registries."""

    service_account_name: ObjectName | None = None
    """ServiceAccount of the pods, in the namespace of the ModelDeployment. Defaults to that of the provider, which
    is usually `default`."""

    security_context: Annotated[dict[str, Any], Like(PodSecurityContext)] = Field(default_factory=dict)
    """Security settings of all containers."""

    priority_class_name: ObjectName | None = None
    """PriorityClass of the pods."""

    runtime_class_name: ObjectName | None = None
    """RuntimeClass of the pods, where GPUs or isolation need one."""

    scheduler_name: ObjectName | None = None
    """Scheduler of the pods. Defaults to that of the cluster."""

    affinity: Annotated[dict[str, Any], Like(Affinity)] = Field(default_factory=dict)
    """Rules for the placement of the pods, in addition to `nodeSelector`."""

    topology_spread_constraints: Annotated[
        list[dict[str, Any]],
        ItemsLike(TopologySpreadConstraint),
        _by("topologyKey", "whenUnsatisfiable", most=16),
    ] = Field(default_factory=list)
    """How the pods are spread over parts of the cluster."""

    volumes: Annotated[list[dict[str, Any]], ItemsLike(Volume), _by("name", most=32)] = Field(
        default_factory=list
    )
    """Volumes of the engine's pods."""

    termination_grace_period_seconds: (
        Annotated[int, Field(ge=1, le=MAX_INT32, json_schema_extra={"format": "int64"})] | None
    ) = None
    """Seconds that a pod has to shut down before it is killed."""

    dns_config: Annotated[dict[str, Any], Like(DnsConfig)] = Field(default_factory=dict)
    """Settings of the DNS resolver, in addition to those of the cluster."""

    resource_claims: Annotated[list[dict[str, Any]], ItemsLike(ResourceClaim), _by("name", most=16)] = Field(
        default_factory=list
    )
    """Devices of the engine's pods (dynamic resource allocation)."""


class EngineContainer(ApiModel):
    """Settings of the container that runs the engine."""

    security_context: Annotated[dict[str, Any], Like(ContainerSecurityContext)] = Field(default_factory=dict)
    """Security settings of the container. They take precedence over those of the pod."""

    volume_mounts: Annotated[list[dict[str, Any]], ItemsLike(VolumeMount), _by("mountPath", most=32)] = Field(
        default_factory=list
    )
    """Volumes in the container."""

    resource_claims: Annotated[list[dict[str, Any]], ItemsLike(ContainerClaim), _by("name", most=16)] = Field(
        default_factory=list
    )
    """Claims of the pod that the container uses."""


POD_SETTINGS: Final = tuple(
    f"podTemplate.{part}.{field.alias}"
    for part, model in (("spec", PodSpec), ("container", EngineContainer))
    for field in model.model_fields.values()
)
"""Paths of the settings in a ModelDeployment, for `refused_fields`."""

CA_VOLUME: Final = "kubefoundry-ca-bundle"
"""Name of a volume that pods without an engine mount, too, because they may talk to the hub."""

ENGINE_ONLY: Final = frozenset({"volumes", "resourceClaims"})
"""Fields of PodSpec that only pods with an engine get: frontends and heads mount no weights and use no devices."""
