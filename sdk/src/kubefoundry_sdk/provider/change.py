"""What a change of a ModelDeployment, and nothing else, means for the manifest that was applied (contract §4).

The manifest on the upstream object came from an earlier spec, perhaps through an earlier shim. Rendering both specs
with the shim of today tells what the *user* changed; only that is brought onto the applied manifest. So a newer
shim with other default images or flags restarts nothing, and `kubectl scale` rolls nothing but the scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec

IDENTITY: Final = ("model.id", "model.source", "engine.type", "serving.mode")
"""Fields whose change deletes and recreates (003 §4.11; `provider.name` is a hand-over instead)."""

_MISSING: Final = object()


def identity_changed(old: ModelDeploymentSpec, new: ModelDeploymentSpec) -> list[str]:
    """The identity fields that differ."""
    pairs = {
        "model.id": (old.model.id, new.model.id),
        "model.source": (old.model.source, new.model.source),
        "engine.type": (old.engine.type, new.engine.type),
        "serving.mode": (old.serving.mode, new.serving.mode),
    }
    return [name for name in IDENTITY if pairs[name][0] != pairs[name][1]]


def rebase(applied: Any, old: Any, new: Any) -> Any:
    """`applied` with what differs between `old` and `new`, two renders by the same shim.

    Maps are walked; lists of named objects (containers, components, env) are matched by name; any other list or
    value that differs is taken from `new` whole.
    """
    if old == new:
        return applied
    if isinstance(applied, dict) and isinstance(old, dict) and isinstance(new, dict):
        return _map(applied, old, new)
    if _named(applied) and _named(old) and _named(new):
        return _list(applied, old, new)
    return new


def _map(applied: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(applied)
    for key in {**old, **new}:
        before, after = old.get(key, _MISSING), new.get(key, _MISSING)
        if before == after:
            continue
        if after is _MISSING:
            result.pop(key, None)
        else:
            result[key] = rebase(applied.get(key, _MISSING), before, after)
    return result


def _list(applied: list[Object], old: list[Object], new: list[Object]) -> list[Object]:
    """In the order of `new`; items that only the applied manifest has stay, after those."""
    have = {item["name"]: item for item in applied}
    was = {item["name"]: item for item in old}
    result = [rebase(have.get(item["name"], _MISSING), was.get(item["name"], _MISSING), item) for item in new]
    result = [
        have[item["name"]] if was.get(item["name"]) == item and item["name"] in have else made
        for item, made in zip(new, result, strict=True)
    ]
    names = {item["name"] for item in new}
    return result + [item for item in applied if item["name"] not in names and item["name"] not in was]


def _named(value: Any) -> bool:
    """A list of objects that each have a name, no two the same."""
    if not isinstance(value, list) or not value:
        return False
    names = [item.get("name") for item in value if isinstance(item, dict)]
    return len(names) == len(value) and None not in names and len(set(map(str, names))) == len(names)
