"""The init containers: install providers, extract the base configuration, merge (sources §5.2)."""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_llamastack.names import EXTRACT, INSTALL, MERGE
from kubefoundry_llamastack.render import tool
from kubefoundry_llamastack.render.request import Distribution, Found, Settings
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.pod_status import LAST_WORDS
from llamastack_providers import layout

RESTRICTED: Final[Object] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What the Pod Security level `restricted` requires of every container."""

LOCATION: Final = frozenset({"RUN_CONFIG_PATH", "DISTRO_NAME"})
"""Variables of the CR that say where a distribution keeps its configuration."""


def containers(cr: Distribution, found: Found, settings: Settings) -> list[Object]:
    """In the order in which they run; none without providers."""
    if not cr.extended:
        return []
    commands = tool.install(cr)
    made = [
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
    if found.user_config is None:
        extract = _container(
            EXTRACT,
            found.image,
            tool.extract(found.image),
            [_mount("base-config", layout.BASE_CONFIG)],
        )
        given = [
            item
            for item in cr.spec.server.container_spec.env or ()
            if item.get("name") in LOCATION and "value" in item
        ]
        made.append({**extract, **({"env": given} if given else {})})
    made.append(
        _container(
            MERGE,
            found.image,
            tool.merge(cr, found.image),
            [
                _mount("external-providers", layout.EXTERNAL_PROVIDERS, read_only=True),
                base_mount(found),
                _mount("config", layout.CONFIG),
            ],
        )
    )
    for container in made:
        if settings.init_resources:
            container["resources"] = {key: dict(value) for key, value in settings.init_resources.items()}
        if found.restricted:
            container["securityContext"] = RESTRICTED
    return made


def base_mount(found: Found) -> Object:
    """Where merge finds the base configuration: the extracted one, or the user's ConfigMap."""
    if found.user_config is None:
        return _mount("base-config", layout.BASE_CONFIG, read_only=True)
    mount = _mount("user-config", f"{layout.BASE_CONFIG}/run.yaml", read_only=True)
    return {**mount, "subPath": found.user_config.key}


def volumes(cr: Distribution, found: Found, settings: Settings) -> list[Object]:
    """The volumes that pass packages and configuration from one container to the next, and the tool."""
    if not cr.extended:
        return []
    made: list[Object] = [{"name": "external-providers", "emptyDir": {"sizeLimit": settings.size_limit}}]
    if found.user_config is None:
        made.append({"name": "base-config", "emptyDir": {}})
    made += [{"name": "config", "emptyDir": {}}, {"name": "effective-config", "emptyDir": {}}]
    made.append({"name": "provider-tool", "configMap": {"name": found.tool}})
    return made


def server_mounts(cr: Distribution) -> list[Object]:
    """The mounts of these in the server's container."""
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
    made: dict[str, Any] = {"name": name, "mountPath": path}
    if read_only:
        made["readOnly"] = True
    return made
