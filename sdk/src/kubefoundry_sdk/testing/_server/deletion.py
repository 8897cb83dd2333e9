"""Deletes objects: preconditions, finalizers, propagation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing._server import collection, content, errors
from kubefoundry_sdk.testing._server.requests import Answer, Request, Target
from kubefoundry_sdk.testing._server.store import Store


@dataclass(slots=True)
class Deletions:
    """Carries out deletions. `now` returns the current time as objects hold it."""

    store: Store
    now: Callable[[], str]

    def delete(self, target: Target, live: Object, request: Request) -> Answer:
        """Delete an object, or mark it if finalizers hold it."""
        if target.subresource:
            raise errors.not_served()
        if target.resource.plural == "namespaces":
            raise errors.unknown_feature("the deletion of a namespace")
        # Parameters count only without a body.
        options: Any = content.decoded(request.body) if request.body else dict(request.query)
        self._check_preconditions(target, live, options.get("preconditions"))
        is_dry = "All" in (options.get("dryRun") or ())
        meta = live["metadata"]
        finalizers = _finalizers(meta, options.get("propagationPolicy") or "Background")
        if not finalizers:
            if not is_dry:
                self.store.remove(target.resource.storage, target.key, live)
                self._remove_objects_of(target)
            return Answer(200, _deleted(target, meta["uid"]))
        marked = collection.marked(live, finalizers, self.now())
        if same(marked, live) or is_dry:
            return Answer(200, marked)
        return Answer(200, self.store.put(target.resource.storage, target.key, marked))

    def _remove_objects_of(self, target: Target) -> None:
        """Remove the objects of a deleted CRD."""
        if target.resource.plural != "customresourcedefinitions":
            return
        plural, _, group = target.name.partition(".")
        for obj in self.store.all((group, plural)):
            meta = obj["metadata"]
            self.store.remove((group, plural), (meta.get("namespace", ""), meta["name"]), obj)

    def _check_preconditions(self, target: Target, live: Object, stated: Mapping[str, Any] | None) -> None:
        meta, resource = live["metadata"], target.resource
        for name, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if stated and stated.get(name) not in (None, meta[name]):
                text = (
                    f"the {title} in the precondition ({stated[name]}) does not match the {title} in record "
                    f"({meta[name]}). The object might have been "
                    + ("deleted and then recreated" if name == "uid" else "modified")
                )
                raise errors.conflict(resource.group, resource.kind, target.name, text)


def _finalizers(meta: Object, policy: str) -> list[str]:
    """Return the finalizers that hold a deleted object: the garbage collector's depend on the policy."""
    of_policy = {"Foreground": [collection.FOREGROUND], "Orphan": [collection.ORPHAN]}.get(policy, [])
    others = [name for name in meta.get("finalizers") or () if name not in collection.OF_POLICIES]
    return [*others, *of_policy]


def _deleted(target: Target, uid: str) -> Object:
    resource = target.resource
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": target.name,
            **({"group": resource.group} if resource.group else {}),
            "kind": resource.plural,
            "uid": uid,
        },
    }
