"""Merges the user's change of a ModelDeployment, and nothing else, into the applied manifest (contract §4).

The manifest on the upstream object came from an earlier spec, perhaps through an earlier provider. The current
provider renders both specs. The difference between these renders is the *user's* change, and only this difference is
merged into the applied manifest. So a newer provider with other default images or flags restarts nothing, and
`kubectl scale` changes only the scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.write.drift import distinct_by

_MISSING: Final = object()


def identity_changed(old: ModelDeploymentSpec, new: ModelDeploymentSpec) -> list[str]:
    """Return the differing fields whose change deletes and recreates (contract §4).

    A change of `provider.name` is a hand-over instead.
    """
    pairs = {
        "model.id": (old.model.id, new.model.id),
        "model.source": (old.model.source, new.model.source),
        "engine.type": (old.engine.type, new.engine.type),
        "serving.mode": (old.serving.mode, new.serving.mode),
    }
    return [name for name, (before, after) in pairs.items() if before != after]


def rebase(applied: Any, old: Any, new: Any) -> Any:
    """Return `applied` with the differences between `old` and `new`, two renders by the same provider.

    Maps are merged key by key. Lists of named objects (containers, components, env) are matched by name, other lists
    of objects by index if all three have the same length. Any other list or value that differs is taken from `new`.
    """
    if same(old, new):
        return applied
    values = (applied, old, new)
    if all(isinstance(value, dict) for value in values):
        return _map(applied, old, new)
    if (applied is _MISSING or distinct_by(applied, "name")) and all(
        distinct_by(render, "name") for render in (old, new)
    ):
        return _by_name([] if applied is _MISSING else applied, old, new)
    if all(map(_objects, values)) and len(applied) == len(old) == len(new):
        return [rebase(*items) for items in zip(*values, strict=True)]
    return new


def _map(applied: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(applied)
    for key in {**old, **new}:
        before, after = old.get(key, _MISSING), new.get(key, _MISSING)
        if same(before, after):
            continue
        if after is _MISSING:
            result.pop(key, None)
        else:
            result[key] = rebase(applied.get(key, _MISSING), before, after)
            # All items were left out, because they come from a newer provider. The API server stores no empty list.
            if result[key] == [] and after:
                del result[key]
    return result


def _by_name(applied: list[Object], old: list[Object], new: list[Object]) -> list[Object]:
    """Return the items in the order of `new`, followed by items that only the applied manifest has.

    Items that both renders have and the applied manifest lacks come from a newer provider, and are left out.
    """
    applied_by_name = {item["name"]: item for item in applied}
    old_by_name = {item["name"]: item for item in old}
    result = []
    for item in new:
        name = item["name"]
        if not same(old_by_name.get(name), item):
            result.append(rebase(applied_by_name.get(name, _MISSING), old_by_name.get(name, _MISSING), item))
        elif name in applied_by_name:
            result.append(applied_by_name[name])
    names = {item["name"] for item in new}
    return result + [
        item for item in applied if item["name"] not in names and item["name"] not in old_by_name
    ]


def _objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
