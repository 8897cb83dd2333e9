"""`model.storage` of an object that becomes a ModelDeployment: providers read it as volumes and variables of pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from kubefoundry_sdk._api.engine_caches import FOLDERS, MODULES, OFFLINE, PATHS, cache_variables
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.model_storage import MOST_VOLUMES
from kubefoundry_sdk._api.untrusted import part


def forms(spec: Object) -> Iterator[Object]:
    """Yield the spec with `model.storage` where variables name volumes or keep the engine offline, and as it is.

    Only the first volumes become storage, because `model.storage` renders them before those of `podTemplate`.
    """
    engine = str(part(spec, "engine").get("type"))
    values = {item["name"]: item["value"] for item in spec.get("env", ()) if "value" in item}
    mounted = _plain_volumes(spec)
    volumes = [_volume(volume, mount, engine, values) for volume, mount in mounted]
    variables: dict[str, str] = {}
    for volume, (_, mount) in zip(volumes, mounted, strict=True):
        variables |= _variables(volume, mount["mountPath"], engine, values)
    offline = dict.fromkeys(OFFLINE.get(engine, ()), "1")
    if is_offline := bool(offline) and offline.items() <= values.items():
        variables |= offline
    if variables:
        yield _moved(spec, volumes, variables, offline=is_offline)
    yield spec


def _variables(volume: Object, path: str, engine: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a volume of `model.storage` sets."""
    variables = dict(cache_variables(volume.get("purpose", "custom"), engine, path))
    is_read_only = volume.get("readOnly") or "image" in volume
    if is_read_only and volume.get("purpose") == "modelCache":
        variables |= {name: value for name, value in MODULES.items() if values.get(name) == value}
    return variables


def _plain_volumes(spec: Object) -> list[tuple[Object, Object]]:
    """Return the first volumes with their mounts, up to one that `model.storage` cannot express."""
    mounts = part(spec, "podTemplate", "container").get("volumeMounts") or []
    volumes = part(spec, "podTemplate", "spec").get("volumes") or []
    pairs = takewhile(lambda pair: _is_plain(*pair), zip(volumes, mounts, strict=False))
    return list(pairs)[:MOST_VOLUMES]


def _is_plain(volume: Mapping[str, Any], mount: Mapping[str, Any]) -> bool:
    """Check whether a volume is a claim or an image, with a mount as `model.storage` renders it."""
    return (
        ("persistentVolumeClaim" in volume or "image" in volume)
        and mount["name"] == volume["name"]
        and mount.keys() - {"subPath"} == {"name", "mountPath"}
    )


def _volume(
    volume: Mapping[str, Any], mount: Mapping[str, Any], engine: str, values: Mapping[str, str]
) -> Object:
    path, claim = mount["mountPath"], volume.get("persistentVolumeClaim")
    source = {"claimName": claim["claimName"]} if claim else {"image": volume["image"]}
    stored: Object = {"name": volume["name"], **source}
    for purpose in FOLDERS:
        variables = cache_variables(purpose, engine, path)
        if variables and variables.items() <= values.items():
            stored["purpose"] = purpose
    if path != PATHS.get(stored.get("purpose", "custom")):
        stored["mountPath"] = path
    if "subPath" in mount:
        stored["subPath"] = mount["subPath"]
    return {**stored, "readOnly": True} if claim and claim.get("readOnly") else stored


def _moved(spec: Object, volumes: list[Object], variables: Mapping[str, str], *, offline: bool) -> Object:
    number, template = len(volumes), part(spec, "podTemplate")
    moved = {
        **template,
        "spec": _without_first(template.get("spec"), "volumes", number),
        "container": _without_first(template.get("container"), "volumeMounts", number),
    }
    model = part(spec, "model")
    storage = {**part(model, "storage"), "volumes": volumes, **({"offline": True} if offline else {})}
    return {
        **spec,
        "model": {**model, "storage": storage},
        "env": [item for item in spec["env"] if item["name"] not in variables],
        "podTemplate": moved,
    }


def _without_first(settings: Any, field: str, number: int) -> Object:
    return {**part(settings), field: (part(settings).get(field) or [])[number:]}
