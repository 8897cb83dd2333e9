"""Security contexts of a pod and of the engine's container, without fields that give access to the node."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.fields import MAX_INT32, ApiModel

Id = Annotated[int, Field(ge=0, le=MAX_INT32, json_schema_extra={"format": "int64"})]
"""Id of a user or a group."""

LIST: Final = {"x-kubernetes-list-type": "atomic"}


class SeccompProfile(ApiModel):
    """The system calls that the containers may make."""

    type: Literal["RuntimeDefault", "Localhost"]
    """RuntimeDefault (the profile of the container runtime) or Localhost (a file on the node)."""

    localhost_profile: Annotated[str, Field(max_length=512, pattern=formats.RELATIVE_PATH)] | None = None
    """File below the kubelet's folder of seccomp profiles. Required for type Localhost, and only allowed there."""


class RunAs(ApiModel):
    """The user and group of a process."""

    run_as_user: Id | None = None
    """Id of the user that the process runs as. Defaults to the user in the image, or to that of the provider."""

    run_as_group: Id | None = None
    """Id of the primary group of the process."""

    run_as_non_root: bool | None = None
    """Whether the kubelet refuses to start a container as root."""


class PodSecurityContext(RunAs):
    """Security settings of all containers of a pod."""

    fs_group: Id | None = None
    """Id of the group that owns the files in volumes."""

    fs_group_change_policy: Literal["OnRootMismatch", "Always"] | None = None
    """When the owner of files in volumes is changed: OnRootMismatch (only if the owner of the top folder differs) or
    Always (the default)."""

    supplemental_groups: (
        Annotated[list[Id], Field(min_length=1, max_length=32, json_schema_extra=LIST)] | None
    ) = None
    """Ids of further groups of the processes."""

    seccomp_profile: SeccompProfile | None = None
    """The system calls that the containers may make."""


class Capabilities(ApiModel):
    """Linux capabilities. None can be added."""

    drop: Annotated[
        list[Annotated[str, Field(max_length=63, pattern=formats.CAPABILITY)]],
        Field(min_length=1, max_length=64, json_schema_extra=LIST),
    ]
    """Capabilities that the container loses, for example ALL."""


class ContainerSecurityContext(RunAs):
    """Security settings of the engine's container. They can restrict it, and give it no access to the node."""

    read_only_root_filesystem: bool | None = None
    """Whether the container's own files are read-only. The engine then needs volumes where it writes."""

    allow_privilege_escalation: bool | None = None
    """Whether a process can gain more privileges than its parent. Only false is allowed."""

    capabilities: Capabilities | None = None
    """Linux capabilities that the container loses."""
