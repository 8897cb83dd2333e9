"""`spec.podTemplate.spec`, `spec.podTemplate.container` and `spec.model.storage` in the pods that a provider renders.

A volume of `model.storage` is a volume and a mount as in `podTemplate`, and variables of the container. So it works
where `podTemplate` works, in every version of an upstream's CRD. Dynamo's own `pvcs` and `compilationCache` set no
more: one variable, for vLLM only.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from kubefoundry_sdk._api.engine_caches import MODULES, OFFLINE, cache_variables
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.model_storage import StorageVolume
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._api.pod_spec import CA_VOLUME, ENGINE_ONLY, EngineContainer, PodSpec


def with_pod_settings(pod: Object, spec: ModelDeploymentSpec, *, runs_engine: bool = True) -> Object:
    """Return the spec of a pod with the settings in `podTemplate.spec`, and the volumes of `model.storage`.

    A stated map is merged into the provider's own, a stated list follows it, and any other value replaces it. Without
    settings the result equals `pod`.

    Args:
        pod: The pod's spec as the provider renders it.
        spec: The spec of the ModelDeployment.
        runs_engine: Whether the pod runs an engine. Other pods get no resource claims, and of the volumes only the
            CA bundle.
    """
    stated = stated_fields(spec.pod_template.spec)
    if runs_engine:
        if volumes := _storage_volumes(spec):
            stated["volumes"] = [*volumes, *stated.get("volumes", ())]
        return _merged(pod, stated)
    bundle = [volume for volume in stated.get("volumes", ()) if volume["name"] == CA_VOLUME]
    others = {name: value for name, value in stated.items() if name not in ENGINE_ONLY}
    return _merged(pod, {**others, **({"volumes": bundle} if bundle else {})})


def with_container_settings(
    container: Object, spec: ModelDeploymentSpec, *, runs_engine: bool = True
) -> Object:
    """Return a container with the settings in `podTemplate.container`, merged as in `with_pod_settings`.

    The container of an engine also gets the mounts and variables of `model.storage`. These replace variables of the
    same name.

    Args:
        container: The container as the provider renders it, with its `env`.
        spec: The spec of the ModelDeployment.
        runs_engine: Whether the container runs an engine. Other containers get only the security context, and the
            CA bundle if they have variables.
    """
    stated = stated_fields(spec.pod_template.container)
    claims = stated.pop("resourceClaims", None)
    if not runs_engine:
        mounts = stated.pop("volumeMounts", ())
        bundle = [mount for mount in mounts if mount["name"] == CA_VOLUME and container.get("env")]
        return _merged(container, {**stated, **({"volumeMounts": bundle} if bundle else {})})
    if claims:
        stated["resources"] = {"claims": claims}
    if mounts := _storage_mounts(spec):
        stated["volumeMounts"] = [*mounts, *stated.get("volumeMounts", ())]
    if variables := storage_variables(spec):
        others = [variable for variable in container.get("env", ()) if variable["name"] not in variables]
        ours = [{"name": name, "value": value} for name, value in variables.items()]
        container = {**container, "env": [*others, *ours]}
    return _merged(container, stated)


def storage_variables(spec: ModelDeploymentSpec) -> dict[str, str]:
    """Return the variables by which the engine finds the caches of `model.storage`, and stays offline.

    Variables in `env` are left out. The rules of the spec refuse those that would make a cache useless.
    """
    engine, storage = spec.engine.type or "", spec.model.storage
    variables: dict[str, str] = {}
    for volume in storage.volumes:
        variables |= cache_variables(volume.purpose, engine, volume.path)
    if spec.engine.trust_remote_code and any(
        volume.purpose == "modelCache" and volume.is_read_only for volume in storage.volumes
    ):
        variables |= MODULES
    variables |= dict.fromkeys(OFFLINE.get(engine, ()) if storage.is_offline else (), "1")
    stated = {variable["name"] for variable in spec.env}
    return {name: value for name, value in variables.items() if name not in stated}


def storage_notes(spec: ModelDeploymentSpec, pods: int) -> tuple[str, ...]:
    """Return a note about the access mode that the claims of `model.storage` need, if several pods mount them.

    A claim that core creates with `ReadWriteMany` needs none.

    Args:
        spec: The spec of the ModelDeployment.
        pods: The number of pods that run an engine.
    """
    claims = dict.fromkeys(
        volume.claim_name or "" for volume in spec.model.storage.claims if not volume.is_shared
    )
    if pods < 2 or not claims:
        return ()
    return (
        f"{pods} pods mount PersistentVolumeClaim {', '.join(claims)}: pods on several nodes need ReadWriteMany, or "
        "ReadOnlyMany with readOnly.",
    )


def _storage_volumes(spec: ModelDeploymentSpec) -> list[Object]:
    return [{"name": volume.name, **_source(volume)} for volume in spec.model.storage.volumes]


def _source(volume: StorageVolume) -> Object:
    if volume.image is not None:
        return {"image": volume.image.model_dump(by_alias=True, exclude_none=True)}
    read_only = {"readOnly": True} if volume.read_only else {}
    return {"persistentVolumeClaim": {"claimName": volume.claim_name, **read_only}}


def _storage_mounts(spec: ModelDeploymentSpec) -> list[Object]:
    return [
        {
            "name": volume.name,
            "mountPath": volume.path,
            **({"subPath": volume.sub_path} if volume.sub_path else {}),
        }
        for volume in spec.model.storage.volumes
    ]


def volume_problems(spec: ModelDeploymentSpec, title: str, own: Mapping[str, str]) -> list[str]:
    """Return a sentence for each volume and mount that clashes with one of the provider, its upstream or the spec.

    Args:
        spec: The spec of the ModelDeployment.
        title: The name of the upstream in messages.
        own: The paths at which the upstream's own volumes are mounted, by the volumes' names.
    """
    return [*_name_clashes(spec, title, own), *_claim_clashes(spec), *_path_clashes(spec, title, own)]


def _name_clashes(spec: ModelDeploymentSpec, title: str, own: Mapping[str, str]) -> Iterator[str]:
    for field, names in (
        ("podTemplate.spec.volumes", [volume["name"] for volume in spec.pod_template.spec.volumes]),
        ("model.storage.volumes", [volume.name for volume in spec.model.storage.volumes]),
    ):
        for name in names:
            if name in own:
                yield f"{title} has its own volume {name}: choose another name in {field}"


def _claim_clashes(spec: ModelDeploymentSpec) -> Iterator[str]:
    """Yield claims of storage that a second volume has, because such a pod may wait for its volumes forever.

    Source: kubernetes/kubernetes#82526.
    """
    before = {
        volume["persistentVolumeClaim"]["claimName"]: volume["name"]
        for volume in spec.pod_template.spec.volumes
        if "persistentVolumeClaim" in volume
    }
    for volume in spec.model.storage.claims:
        claim = volume.claim_name or ""
        if claim in before:
            yield (
                f"volumes {before[claim]} and {volume.name} have the same claim {claim}, so "
                "pods may never start: choose another claim in model.storage.volumes"
            )
        before[claim] = volume.name


def _path_clashes(spec: ModelDeploymentSpec, title: str, own: Mapping[str, str]) -> Iterator[str]:
    mounts = [
        *(
            ("podTemplate.container.volumeMounts", mount["name"], mount["mountPath"])
            for mount in spec.pod_template.container.volume_mounts
        ),
        *(("model.storage.volumes", volume.name, volume.path) for volume in spec.model.storage.volumes),
    ]
    before: dict[str, str] = {}
    for field, volume, mount_path in mounts:
        path = posixpath.normpath(mount_path)
        if path == "/" or path.split("/")[1] == "proc":
            # runc starts no container with a volume there, except at a few files such as /proc/cpuinfo.
            yield (
                f"volume {volume} would be mounted at {path}, and volumes at / and below /proc are refused, because "
                f"hardly any container starts with them: choose another mountPath in {field}"
            )
        for name in sorted(name for name, place in own.items() if place == path):
            yield f"{title} mounts its own volume {name} at {path}: choose another mountPath in {field}"
        if field == "model.storage.volumes" and path in before:
            yield (
                f"volumes {before[path]} and {volume} are both mounted at {path}: choose another mountPath in {field}"
            )
        before[path] = volume


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
