"""Parts of a pod that a ModelDeployment carries as they are: environment variables and tolerations.

They document and bound the CRD's schema (Kubernetes core/v1, as of 1.26); in the typed spec these parts stay
JSON, because providers pass them on unchanged.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.fields import ApiModel, Quantity

ATOMIC: Final = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})
"""One writer owns the whole reference, because a name without its key means nothing."""

ConfigKey = Annotated[str, Field(min_length=1, max_length=253, pattern=formats.CONFIG_KEY)]
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=formats.DNS_SUBDOMAIN)]


class FieldReference(ApiModel):
    """A field of the pod."""

    model_config = ATOMIC

    field_path: Annotated[str, Field(min_length=1, max_length=512)]
    """Path of the field, for example `metadata.name` or `metadata.labels['app']`."""

    api_version: Annotated[str, Field(max_length=64)] | None = None
    """API version that fieldPath refers to; defaults to v1."""


class ResourceFieldReference(ApiModel):
    """A resource request or limit of a container."""

    model_config = ATOMIC

    resource: Annotated[str, Field(min_length=1, max_length=253)]
    """The request or limit, for example `limits.memory` or `requests.cpu`."""

    container_name: Annotated[str, Field(max_length=63)] | None = None
    """Name of the container. Defaults to the one that sets the variable."""

    divisor: Quantity | None = None
    """Unit of the value, for example "1Mi"; defaults to 1."""


class ConfigMapKey(ApiModel):
    """A key of a ConfigMap."""

    model_config = ATOMIC

    name: ObjectName
    """Name of the ConfigMap, in the namespace of the ModelDeployment."""

    key: ConfigKey
    """Key in the ConfigMap. The variable gets its value."""

    optional: bool | None = None
    """Whether the pod may start without the variable if the ConfigMap or the key does not exist."""


class SecretKey(ApiModel):
    """A key of a Secret."""

    model_config = ATOMIC

    name: ObjectName
    """Name of the Secret, in the namespace of the ModelDeployment."""

    key: ConfigKey
    """Key in the Secret. The variable gets its value."""

    optional: bool | None = None
    """Whether the pod may start without the variable if the Secret or the key does not exist."""


class EnvVarSource(ApiModel):
    """Source of an environment variable's value."""

    field_ref: FieldReference | None = None
    """Take the value from a field of the pod."""

    resource_field_ref: ResourceFieldReference | None = None
    """Take the value from a resource request or limit of a container."""

    config_map_key_ref: ConfigMapKey | None = None
    """Take the value from a key of a ConfigMap."""

    secret_key_ref: SecretKey | None = None
    """Take the value from a key of a Secret."""


class EnvVar(ApiModel):
    """An environment variable of the engine's container."""

    name: Annotated[str, Field(min_length=1, max_length=253, pattern=formats.ENV_NAME)]
    """Name of the variable; each name may occur once."""

    value: Annotated[str, Field(max_length=32768)] | None = None
    """Value of the variable. $(NAME) expands to the value of a variable earlier in the list. $$ is a literal $.
    Defaults to an empty value."""

    value_from: EnvVarSource | None = None
    """Source of the value, instead of `value`; exactly one must be set."""


class Toleration(ApiModel):
    """A node taint that the engine's pods tolerate."""

    key: Annotated[str, Field(max_length=317)] | None = None
    """Key of the taint. If omitted, all keys match, and operator must be Exists."""

    operator: Literal["Exists", "Equal"] | None = None
    """How to match the taint's value: Equal (the default) compares it with `value`, Exists matches every value."""

    value: Annotated[str, Field(max_length=63, pattern=formats.LABEL_VALUE)] | None = None
    """Value of the taint, for operator Equal."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint. If omitted, all effects match."""

    toleration_seconds: Annotated[int, Field(json_schema_extra={"format": "int64"})] | None = None
    """Seconds that a pod stays on a node after a NoExecute taint was added. Defaults to forever."""
