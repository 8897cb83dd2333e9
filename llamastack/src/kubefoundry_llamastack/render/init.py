"""Renders the init containers: install providers, extract the base configuration, merge (sources §5.2)."""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_llamastack.names import EXTRACT, INSTALL, MERGE
from kubefoundry_llamastack.render import sidecars, tool
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.pod_status import LAST_WORDS
from llamastack_providers import layout

RESTRICTED: Final[Object] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""Settings that the Pod Security level `restricted` requires of every container."""

LOCATION: Final = frozenset({"RUN_CONFIG_PATH", "DISTRO_NAME"})
"""Variables of the CR with the place of a distribution's configuration."""


def containers(cr: Distribution, inputs: PodInputs, settings: Settings) -> list[Object]:
    """Render the init containers in the order in which they run. There are none without providers."""
    if not cr.extended:
        return []
    commands = tool.install(cr)
    result = [
        {
            **_container(
                f"{INSTALL}{item.provider_id}",
                item.image,
                commands[item.provider_id],
                [_mount("external-providers", layout.EXTERNAL_PROVIDERS)],
            ),
            "imagePullPolicy": item.image_pull_policy,
        }
        for _, item in cr.spec.providers()
    ]
    if inputs.user_config is None:
        extract = _container(
            EXTRACT,
            inputs.image,
            tool.extract(inputs.image),
            [_mount("base-config", layout.BASE_CONFIG)],
        )
        env = [
            item
            for item in cr.spec.server.container_spec.env or ()
            if item.get("name") in LOCATION and "value" in item
        ]
        result.append({**extract, **({"env": env} if env else {})})
    result.append(
        _container(
            MERGE,
            inputs.image,
            tool.merge(cr, inputs.image, inputs.user_config),
            [
                _mount("external-providers", layout.EXTERNAL_PROVIDERS, read_only=True),
                base_mount(inputs),
                _mount("config", layout.CONFIG),
                *sidecars.token_mounts(cr),
            ],
        )
    )
    for container in result:
        if settings.init_resources:
            container["resources"] = {key: dict(value) for key, value in settings.init_resources.items()}
        if inputs.restricted:
            container["securityContext"] = RESTRICTED
    return result


def base_mount(inputs: PodInputs) -> Object:
    """Render the mount with merge's base configuration: the extracted one, or the user's ConfigMap."""
    if inputs.user_config is None:
        return _mount("base-config", layout.BASE_CONFIG, read_only=True)
    mount = _mount("user-config", f"{layout.BASE_CONFIG}/run.yaml", read_only=True)
    return {**mount, "subPath": inputs.user_config.key}


def volumes(cr: Distribution, inputs: PodInputs, settings: Settings) -> list[Object]:
    """Render the tool's volume, and those that pass packages and configuration to the next container."""
    if not cr.extended:
        return []
    result: list[Object] = [{"name": "external-providers", "emptyDir": {"sizeLimit": settings.size_limit}}]
    if inputs.user_config is None:
        result.append({"name": "base-config", "emptyDir": {}})
    result += [{"name": "config", "emptyDir": {}}, {"name": "effective-config", "emptyDir": {}}]
    result.append({"name": "provider-tool", "configMap": {"name": inputs.tool}})
    return result


def server_mounts(cr: Distribution) -> list[Object]:
    """Render the mounts of these volumes in the server's container."""
    if not cr.extended:
        return []
    return [
        _mount("external-providers", layout.EXTERNAL_PROVIDERS, read_only=True),
        _mount("config", layout.CONFIG, read_only=True),
        _mount("effective-config", layout.EFFECTIVE_CONFIG),
        _mount("provider-tool", tool.FOLDER, read_only=True),
    ]


def _container(name: str, image: str, command: list[str], mounts: list[Object]) -> Object:
    return {
        "name": name,
        "image": image,
        "command": command,
        "volumeMounts": [*mounts, _mount("provider-tool", tool.FOLDER, read_only=True)],
        # The tool writes its error there; if it could not even start, the log is used.
        **LAST_WORDS,
    }


def _mount(name: str, path: str, *, read_only: bool = False) -> Object:
    mount: dict[str, Any] = {"name": name, "mountPath": path}
    if read_only:
        mount["readOnly"] = True
    return mount
