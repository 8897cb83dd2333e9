"""Compose the sandbox of a container from its spec, pod, image and volumes (kubelet 1.36: kuberuntime)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubefoundry_nodes.kubelet import environment, names, sandbox
from kubefoundry_nodes.kubelet.environment import ConfigError
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.sandbox import Mount, Sandbox
from kubefoundry_nodes.kubelet.volumes import Volume
from kubefoundry_sdk._api.kinds import Object

HOSTS: Final = "/run/hosts"
"""Mount point of the folder to which the link /etc/hosts points."""

HOSTNAME: Final = 63
"""Longest host name in bytes; longer names of pods are cut. Linux takes no more than 64."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The input of a sandbox.

    Attributes:
        pod: The pod as an API object.
        container: The container of the pod's spec.
        image: The image of the container.
        env: The environment variables.
        volumes: The volumes of the pod by name.
        scratch: An empty folder.
        message: The file for the termination message.
        names: The folder with the pod's hosts file.
        network: The network namespace of the pod, or None.
    """

    pod: Object
    container: Mapping[str, Any]
    image: Image
    env: Mapping[str, str]
    volumes: Mapping[str, Volume]
    scratch: Path
    message: Path
    names: Path
    network: Path | None


def compose(parts: Parts) -> Sandbox:
    """Compose the sandbox. Raises ConfigError if the configuration is invalid."""
    container, image = parts.container, parts.image
    argv = environment.words(container, image.entrypoint, image.command, parts.env)
    if not argv:
        raise ConfigError("no command specified")
    own = container.get("securityContext") or {}
    return Sandbox(
        scratch=str(parts.scratch),
        lower=image.folders,
        argv=argv,
        env={**image.env, **parts.env},
        cwd=container.get("workingDir") or image.workdir,
        uid=_user(parts),
        gid=security(parts.pod, container, "runAsGroup"),
        groups=_groups(parts.pod),
        capabilities=capabilities(own.get("capabilities") or {}),
        no_new_privileges=own.get("allowPrivilegeEscalation") is False,
        mounts=mounts(parts),
        links={"/etc/hosts": f"{HOSTS}/{names.FILE}"},
        read_only=bool(own.get("readOnlyRootFilesystem")),
        network=str(parts.network) if parts.network else None,
        hostname=parts.pod["metadata"]["name"][:HOSTNAME],
    )


def _user(parts: Parts) -> int:
    """Return the container's user. Raises ConfigError if it is root and may not be."""
    user = security(parts.pod, parts.container, "runAsUser")
    uid: int = parts.image.user if user is None else user
    if security(parts.pod, parts.container, "runAsNonRoot") and uid == 0:
        reason = (
            " has runAsNonRoot and image will run as root"
            if user is None
            else "'s runAsUser breaks non-root policy"
        )
        raise ConfigError(
            f'container{reason} (pod: "{described(parts.pod)}", container: {parts.container["name"]})'
        )
    return uid


def _groups(pod: Object) -> list[int]:
    context = pod["spec"].get("securityContext") or {}
    groups = [*(context.get("supplementalGroups") or ())]
    return groups if context.get("fsGroup") is None else [*groups, context["fsGroup"]]


def security(pod: Object, container: Mapping[str, Any], field: str) -> Any:
    """Return a field of the container's security context, or else of the pod's."""
    for context in (container.get("securityContext"), pod["spec"].get("securityContext")):
        if context and context.get(field) is not None:
            return context[field]
    return None


def capabilities(changes: Mapping[str, Any]) -> list[int]:
    """Return the numbers of the remaining capabilities. Raises ConfigError for an unsupported one."""
    added, dropped = changes.get("add") or (), changes.get("drop") or ()
    if unknown := set(added) - set(sandbox.CAPABILITIES):
        raise ConfigError(f"capabilities not supported here: {', '.join(sorted(unknown))}")
    kept = {} if "ALL" in dropped else dict(sandbox.CAPABILITIES)
    for name in dropped:
        kept.pop(name, None)
    return sorted({*kept.values(), *(sandbox.CAPABILITIES[name] for name in added)})


def mounts(parts: Parts) -> list[Mount]:
    """Return the mounts of volumes, Service names and termination message. Raises ConfigError."""
    result = [
        Mount(str(parts.names), HOSTS, read_only=True),
        Mount(str(parts.message), parts.container["terminationMessagePath"]),
    ]
    for mount in parts.container.get("volumeMounts") or ():
        volume = parts.volumes[mount["name"]]
        source = below(volume, mount, parts.env)
        read_only = volume.read_only or bool(mount.get("readOnly"))
        result.append(Mount(str(source), mount["mountPath"], read_only))
    return result


def below(volume: Volume, mount: Mapping[str, Any], env: Mapping[str, str]) -> Path:
    """Return the mounted part of a volume, and create the folder of a missing subPath. Raises ConfigError."""
    path = mount.get("subPath") or environment.expand(mount.get("subPathExpr") or "", env)
    if not path:
        return volume.folder
    source = (volume.folder / path).resolve()
    if not source.is_relative_to(volume.folder.resolve()):
        raise ConfigError(f'failed to prepare subPath for volumeMount "{mount["name"]}"')
    if not source.exists():
        source.mkdir(parents=True)
        source.chmod(volume.folder.stat().st_mode)
    return source


def described(pod: Object) -> str:
    """Return the name of a pod as in the kubelet's messages."""
    meta = pod["metadata"]
    return f"{meta['name']}_{meta['namespace']}({meta['uid']})"
