"""`model.storage` of an object that becomes a ModelDeployment: providers read it as claims and variables of pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.model_storage import FOLDERS, MODULES, MOST_VOLUMES, OFFLINE, PATHS, cache_variables
from kubefoundry_sdk._api.untrusted import part


def forms(spec: Object) -> Iterator[Object]:
    """Yield the spec with `model.storage` where variables of the engine name claims or keep it offline, and as it is.

    Only the first volumes become storage, because `model.storage` renders them before those of `podTemplate`.
    """
    engine = str(part(spec, "engine").get("type"))
    values = {item["name"]: item["value"] for item in spec.get("env", ()) if "value" in item}
    mounts = part(spec, "podTemplate", "container").get("volumeMounts") or []
    claims = list(
        takewhile(
            lambda pair: _is_plain(*pair),
            zip(part(spec, "podTemplate", "spec").get("volumes") or [], mounts, strict=False),
        )
    )[:MOST_VOLUMES]
    volumes = [_volume(volume, mount["mountPath"], engine, values) for volume, mount in claims]
    variables: dict[str, str] = {}
    for volume, (_, mount) in zip(volumes, claims, strict=True):
        variables |= cache_variables(volume.get("purpose", "custom"), engine, mount["mountPath"])
        if volume.get("readOnly") and volume.get("purpose") == "modelCache":
            variables |= {name: value for name, value in MODULES.items() if values.get(name) == value}
    keeps_offline = OFFLINE.get(engine, ())
    offline = bool(keeps_offline) and all(values.get(name) == "1" for name in keeps_offline)
    if offline:
        variables |= dict.fromkeys(keeps_offline, "1")
    if variables:
        yield _moved(spec, volumes, variables, offline=offline)
    yield spec


def _is_plain(volume: Mapping[str, Any], mount: Mapping[str, Any]) -> bool:
    """Check whether a volume is a claim whose whole content is mounted."""
    return (
        "persistentVolumeClaim" in volume
        and mount["name"] == volume["name"]
        and mount.keys() == {"name", "mountPath"}
    )


def _volume(volume: Mapping[str, Any], path: str, engine: str, values: Mapping[str, str]) -> Object:
    claim = volume["persistentVolumeClaim"]
    stored: Object = {"name": volume["name"], "claimName": claim["claimName"]}
    for purpose in FOLDERS:
        variables = cache_variables(purpose, engine, path)
        if variables and variables.items() <= values.items():
            stored["purpose"] = purpose
    if path != PATHS.get(stored.get("purpose", "custom")):
        stored["mountPath"] = path
    return {**stored, "readOnly": True} if claim.get("readOnly") else stored


def _moved(spec: Object, volumes: list[Object], variables: Mapping[str, str], *, offline: bool) -> Object:
    number, template = len(volumes), part(spec, "podTemplate")
    moved = {
        **template,
        "spec": _without_first(template.get("spec"), "volumes", number),
        "container": _without_first(template.get("container"), "volumeMounts", number),
    }
    storage = {"volumes": volumes, **({"offline": True} if offline else {})}
    return {
        **spec,
        "model": {**part(spec, "model"), "storage": storage},
        "env": [item for item in spec["env"] if item["name"] not in variables],
        "podTemplate": moved,
    }


def _without_first(settings: Any, field: str, number: int) -> Object:
    return {**part(settings), field: (part(settings).get(field) or [])[number:]}
