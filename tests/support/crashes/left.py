"""The objects of a namespace, without what depends on the time or on chance."""

from __future__ import annotations

import re
from typing import Any, Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, DEPLOYMENTS, MODEL_DEPLOYMENTS, SERVICES, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._provider.write import manifest
from support.kinds import UPSTREAM

Objects = dict[str, Any]
"""Objects by kind and name."""

KINDS: Final = (MODEL_DEPLOYMENTS, *UPSTREAM.values(), DEPLOYMENTS, SERVICES, CONFIG_MAPS)

RAY_CLUSTER: Final = "ray.io/cluster"
"""KubeRay names each RayCluster at random."""

CHANCE: Final = frozenset(
    {
        *("uid", "resourceVersion", "creationTimestamp", "lastTransitionTime", "clusterIP", "clusterIPs"),
        *(names.OWNER_UID_ANNOTATION, RAY_CLUSTER),
        # The start is reported only together with another change of the status, which may come before the last pod.
        *("start", "f:start"),
    }
)
"""Fields that differ in each run."""

RANDOM_TEXT: Final = re.compile(
    rf"[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}|(?<={RAY_CLUSTER}=)[^,]+"
)
"""A uid, or the name of a RayCluster."""


async def left(api: Client, namespace: str) -> Objects:
    """Return the objects of the namespace by kind and name, with the namespace's name replaced."""
    objects: Objects = {}
    for kind in KINDS:
        items, _ = await api.list(kind, namespace)
        for item in items:
            comparable = _comparable(item, kind == MODEL_DEPLOYMENTS)
            objects[f"{kind.kind} {item['metadata']['name']}"] = _neutral(comparable, namespace)
    objects.pop("ConfigMap kube-root-ca.crt", None)
    return objects


def _comparable(obj: Object, is_ours: bool) -> dict[str, Any]:
    meta = obj["metadata"]
    annotations = dict(meta.get("annotations") or {})
    if names.APPLIED_ANNOTATION in annotations:
        record = manifest.applied(obj)
        assert record is not None
        annotations[names.APPLIED_ANNOTATION] = [record.manifest, record.spec, record.refresh, record.image]
    owned = [
        (entry["manager"], entry["operation"], entry.get("subresource"), entry.get("fieldsV1"))
        for entry in meta.get("managedFields", ())
        if entry["manager"].endswith("-provider")
    ]
    # Others write the status of an upstream object.
    parts = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    if is_ours:
        status = obj.get("status") or {}
        # A map by type, whose order depends on which of two components is quicker.
        conditions = sorted(status.get("conditions") or (), key=lambda condition: str(condition["type"]))
        parts["status"] = {**status, "conditions": conditions}
    kept = {key: value for key, value in meta.items() if key != "managedFields"}
    return {**parts, "metadata": {**kept, "annotations": annotations}, "owned": sorted(owned, key=str)}


def _neutral(value: Any, namespace: str) -> Any:
    if isinstance(value, dict):
        return {
            RANDOM_TEXT.sub("RANDOM", key): _neutral(child, namespace)
            for key, child in value.items()
            if key not in CHANCE
        }
    if isinstance(value, list | tuple):
        return [_neutral(child, namespace) for child in value]
    if isinstance(value, str):
        return RANDOM_TEXT.sub("RANDOM", value).replace(namespace, "NAMESPACE")
    return value
