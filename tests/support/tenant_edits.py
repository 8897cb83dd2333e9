"""Edits that a tenant may make: of the upstream objects and helpers of its models, and of a model's metadata."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object

Operations = list[dict[str, Any]]

PREFIX: Final = "kubefoundry.ai~1"
MARKS: Final = ("ownerReferences", "labels", "annotations")
ENGINE: Final = {
    "direct": "/spec/template/spec/containers/0",
    "kaito": "/inference/template/spec/containers/0",
    "dynamo": "/spec/services/VllmWorker/extraPodSpec/mainContainer",
    "kuberay": "/spec/rayClusterConfig/headGroupSpec/template/spec/containers/0",
}
"""A container that each provider renders."""
OWNED: Final = {
    "direct": (
        (f"{ENGINE['direct']}/args", ["other"]),
        (f"{ENGINE['direct']}/image", "o"),
    ),
    "kaito": (("/resource/count", 7), (f"{ENGINE['kaito']}/image", "other")),
    "dynamo": (
        ("/spec/services/VllmWorker/replicas", 7),
        (f"{ENGINE['dynamo']}/args", ["other"]),
        ("/spec/backendFramework", "sglang"),
    ),
    "kuberay": (("/spec/serveConfigV2", "applications: []"), (f"{ENGINE['kuberay']}/image", "other")),
}
"""Values that each provider renders, and others for them."""
ADDED: Final = (("command", ["other"]), ("env", [{"name": "A", "value": "b"}]))
"""Fields of a container that decide what it runs. None is rendered for these models, but the command of Dynamo."""


def patch(op: str, path: str, value: Any = None) -> dict[str, Any]:
    return {"op": op, "path": path} if op == "remove" else {"op": op, "path": path, "value": value}


def changed_value(chance: Random, provider: str, obj: Object, other: Object) -> Operations:
    path, value = chance.choice(OWNED[provider])
    return [patch("replace", path, value)]


def added_field(chance: Random, provider: str, obj: Object, other: Object) -> Operations:
    name, value = chance.choice(ADDED)
    return [patch("add", f"{ENGINE[provider]}/{name}", value)]


def removed_marks(chance: Random, provider: str, obj: Object, other: Object) -> Operations:
    return [patch("remove", f"/metadata/{part}") for part in chance.sample(MARKS, chance.randint(1, 3))]


def forged_owner(chance: Random, provider: str, obj: Object, other: Object) -> Operations:
    """The marks of another model: a tenant cannot set `blockOwnerDeletion` where a plugin forbids it."""
    meta = other["metadata"]
    owner = {key: other[key] for key in ("apiVersion", "kind")} | {"name": meta["name"], "uid": meta["uid"]}
    if chance.random() < 0.5:
        owner["controller"] = True
    return [
        patch("add", "/metadata/ownerReferences", [owner]),
        patch("add", f"/metadata/annotations/{PREFIX}owner-uid", meta["uid"]),
    ]


def forged_label(chance: Random, provider: str, obj: Object, other: Object) -> Operations:
    name, value = chance.choice((("provider", "other"), ("managed-by", "me")))
    return [patch("add", f"/metadata/labels/{PREFIX}{name}", value)]


def forged_record(chance: Random, provider: str, obj: Object, other: Object) -> Operations:
    name = chance.choice(("applied", "applied-generation", "owner-uid"))
    return [patch("add", f"/metadata/annotations/{PREFIX}{name}", chance.choice(("", "x", "99")))]


def forged_fields(chance: Random, provider: str, obj: Object, other: Object) -> Operations:
    """Another history of who wrote which field."""
    entries = copy.deepcopy(obj["metadata"]["managedFields"])
    ours = names.provider_manager(provider)
    mine = [entry for entry in entries if entry["manager"] == ours]
    match chance.randrange(5):
        case 0:
            entries = []
        case 1:
            entries = [entry for entry in entries if entry["manager"] != ours]
        case 2:
            mine[0]["fieldsV1"] = {"f:metadata": {}} if mine else {}
        case 3:
            for entry in entries:
                entry["manager"] = chance.choice((ours, "other", names.CORE_MANAGER))
        case _:
            for entry in mine:
                entry["operation"] = "Update"
    return [patch("replace", "/metadata/managedFields", entries or [{}])]


Change = Callable[[Random, str, Object, Object], Operations]
UPSTREAM_EDITS: Final[tuple[Change, ...]] = (
    changed_value,
    added_field,
    removed_marks,
    forged_owner,
    forged_label,
    forged_record,
    forged_fields,
)


def model_fields(chance: Random, model: Object) -> Operations:
    """Another history of who wrote the status of a ModelDeployment."""
    entries = copy.deepcopy(model["metadata"]["managedFields"])
    managers = [entry["manager"] for entry in entries]
    match chance.randrange(4):
        case 0:
            entries = [{}]
        case 1:
            entries = [entry for entry in entries if chance.random() < 0.5] or [{}]
        case 2:
            for entry in entries:
                entry["manager"] = chance.choice(managers)
        case _:
            for entry in entries:
                entry.pop("subresource", None)
    return [patch("replace", "/metadata/managedFields", entries)]


def model_finalizers(chance: Random, model: Object) -> Operations:
    return [
        patch("add", "/metadata/finalizers", [f"{names.PREFIX}x-provider"] if chance.random() < 0.5 else [])
    ]


MODEL_EDITS: Final = (model_fields, model_finalizers)


def content(obj: Object) -> Object:
    return {
        key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")
    }


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each value and its path; the items of a list are named as messages name them."""
    items: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = [
            (str(item.get("name", at)) if isinstance(item, dict) else str(at), item)
            for at, item in enumerate(value)
        ]
    else:
        yield path, value
    for name, item in items:
        yield from leaves(item, (*path, name))
