"""`spec.podTemplate.spec` and `spec.podTemplate.container` in the pods that a provider renders."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._api.pod_spec import ENGINE_ONLY, EngineContainer, PodSpec


def with_pod_settings(pod: Object, spec: ModelDeploymentSpec, *, runs_engine: bool = True) -> Object:
    """Return the spec of a pod with the settings in `podTemplate.spec`.

    A stated map is merged into the provider's own, a stated list follows it, and any other value replaces it. Without
    settings the result equals `pod`.

    Args:
        pod: The pod's spec as the provider renders it.
        spec: The spec of the ModelDeployment.
        runs_engine: Whether the pod runs an engine. Other pods get no volumes and no resource claims.
    """
    stated = stated_fields(spec.pod_template.spec)
    return _merged(
        pod, {name: value for name, value in stated.items() if runs_engine or name not in ENGINE_ONLY}
    )


def with_container_settings(
    container: Object, spec: ModelDeploymentSpec, *, runs_engine: bool = True
) -> Object:
    """Return a container with the settings in `podTemplate.container`, merged as in `with_pod_settings`.

    Args:
        container: The container as the provider renders it.
        spec: The spec of the ModelDeployment.
        runs_engine: Whether the container runs an engine. Other containers get only the security context.
    """
    stated = stated_fields(spec.pod_template.container)
    claims = stated.pop("resourceClaims", None)
    if not runs_engine:
        stated.pop("volumeMounts", None)
    elif claims:
        stated["resources"] = {"claims": claims}
    return _merged(container, stated)


def volume_problems(spec: ModelDeploymentSpec, title: str, own: Mapping[str, str]) -> list[str]:
    """Return a sentence for each volume and mount that clashes with a volume of the provider or its upstream.

    Args:
        spec: The spec of the ModelDeployment.
        title: The name of the upstream in messages.
        own: The paths at which the upstream's own volumes are mounted, by the volumes' names.
    """
    return list(_clashes(spec, title, own))


def _clashes(spec: ModelDeploymentSpec, title: str, own: Mapping[str, str]) -> Iterator[str]:
    for volume in spec.pod_template.spec.volumes:
        if volume["name"] in own:
            yield (
                f"{title} has its own volume {volume['name']}: choose another name in podTemplate.spec.volumes"
            )
    for mount in spec.pod_template.container.volume_mounts:
        path = posixpath.normpath(mount["mountPath"])
        for name in sorted(name for name, place in own.items() if place == path):
            yield (
                f"{title} mounts its own volume {name} at {path}: choose another mountPath in "
                "podTemplate.container.volumeMounts"
            )


def stated_fields(settings: PodSpec | EngineContainer) -> Object:
    """Return the fields that are set, by their names in JSON."""
    values = {
        field.alias or name: getattr(settings, name) for name, field in type(settings).model_fields.items()
    }
    return {name: _without_false(value) for name, value in values.items() if value not in (None, [], {})}


def _without_false(value: Any) -> Any:
    """Return the value without `readOnly: false`, which the API server does not store and would show as drift."""
    if isinstance(value, dict):
        return {
            name: _without_false(part)
            for name, part in value.items()
            if name != "readOnly" or part is not False
        }
    return [_without_false(part) for part in value] if isinstance(value, list) else value


def _merged(own: Object, stated: Object) -> Object:
    merged = dict(own)
    for name, value in stated.items():
        before = own.get(name)
        if isinstance(before, dict):
            merged[name] = _merged(before, value)
        elif isinstance(before, list):
            merged[name] = [*before, *(item for item in value if item not in before)]
        else:
            merged[name] = value
    return merged
