"""Creates and changes objects: decoding, field managers, what an endpoint may change, validation."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing import structural
from kubefoundry_sdk.testing._server import (
    content,
    crds,
    errors,
    merging,
    metadata,
    patches,
    schemas,
    workloads,
)
from kubefoundry_sdk.testing._server.errors import Problem, Refused
from kubefoundry_sdk.testing._server.managers import FieldManager
from kubefoundry_sdk.testing._server.requests import (
    APPLY,
    JSON_PATCH,
    MERGE_PATCH,
    Answer,
    Request,
    Target,
    check_name,
    manager_of,
    place,
)
from kubefoundry_sdk.testing._server.resources import Resource
from kubefoundry_sdk.testing._server.store import Store

SERVED: Final = 256
"""The most states of objects that a resource remembers in its version."""


@dataclass(slots=True)
class Writes:
    """Carries out creates, updates and patches. `now` returns the current time as objects hold it."""

    store: Store
    now: Callable[[], str]

    def live(self, target: Target) -> Object:
        """Return an object. Raise Refused (404) if it does not exist."""
        live = self.find(target)
        if live is None:
            raise errors.not_found(target.resource.group, target.resource.plural, target.name)
        return live

    def find(self, target: Target) -> Object | None:
        """Return an object in the version of the target, or None."""
        live = self.store.get(target.resource.storage, target.key)
        return in_version(live, target.resource) if live is not None else None

    def create(self, target: Target, request: Request) -> Answer:
        """Create an object."""
        if target.subresource:
            raise errors.not_served()
        warnings: list[str] = []
        body = content.checked(content.decoded(request.body), target.resource)
        new = content.admitted(body, target.resource, request.query, warnings)
        meta = new["metadata"]
        place(meta, target)
        if "name" not in meta and "generateName" in meta:
            meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
        target = target._replace(name=meta.get("name", ""))
        new = self._managed(target).update(target.resource.empty, new, manager_of(request), self.now())
        return Answer(201, self._created(target, new, request.query), warnings)

    def _created(
        self, target: Target, new: Object, query: Mapping[str, str], empty: Collection[str] = ()
    ) -> Object:
        """Store a new object, with the metadata that only the server sets."""
        resource = target.resource
        is_dry = query.get("dryRun") == "All"
        if not target.name:
            text = "Required value: name or generateName is required"
            problems = [Problem("FieldValueRequired", "metadata.name", text)]
            raise errors.invalid(resource.group, resource.kind, "", problems)
        self._check_namespace(target)
        if new["metadata"].get("resourceVersion") and not is_dry:
            raise Refused(500, "", "resourceVersion should not be set on objects to be created")
        new = self._fresh(resource, new)
        self._check(new, resource)
        if self.store.get(resource.storage, target.key) is not None:
            raise errors.already_exists(resource.group, resource.plural, target.name)
        if is_dry:
            return new
        if resource.plural == "customresourcedefinitions":
            return self.store_crd(crds.completed(new, self.now()))
        return self.store.put(resource.storage, target.key, new, frozenset(empty) if resource.custom else ())

    def _fresh(self, resource: Resource, new: Object) -> Object:
        """Return the object with new metadata, and without a status."""
        meta = {**new["metadata"], "uid": str(uuid.uuid4()), "creationTimestamp": self.now()}
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"):
            meta.pop(name, None)
        new = {**new, "metadata": meta}
        if resource.has_status and resource.custom:
            new.pop("status", None)
        elif resource.has_status:
            new["status"] = {}
        if resource.custom or resource.plural == "deployments":
            meta["generation"] = 1
        return new

    def store_crd(self, crd: Object) -> Object:
        """Store a complete CRD."""
        name = crd["metadata"]["name"]
        return self.store.put(("apiextensions.k8s.io", "customresourcedefinitions"), ("", name), crd)

    def _check_namespace(self, target: Target) -> None:
        if not target.resource.namespaced:
            return
        if self.store.get(("", "namespaces"), ("", target.namespace)) is None:
            raise errors.not_found("", "namespaces", target.namespace)

    def _check(
        self, obj: Object, resource: Resource, old: Object | None = None, subresource: str = ""
    ) -> None:
        found = [*metadata.problems(obj, resource)]
        if resource.custom:
            of_schema = schemas.problems(obj, resource.schema, resource.scale, of_status=bool(subresource))
            found = [*of_schema, *found]
        elif resource.plural == "deployments":
            is_status = bool(subresource)
            found += [
                *(
                    workloads.deployment_status_problems(obj)
                    if is_status
                    else workloads.deployment_problems(old, obj)
                )
            ]
        if old is not None:
            found = [*metadata.update_problems(old, obj, resource), *found]
        if found:
            raise errors.invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), found)

    def replace(self, target: Target, request: Request) -> Answer:
        """Replace an object (PUT)."""
        warnings: list[str] = []
        body = content.checked(content.decoded(request.body), target.resource)
        new = content.admitted(body, target.resource, request.query, warnings)
        place(new["metadata"], target)
        check_name(new["metadata"], target)
        live = self.live(target)
        uid, own = new["metadata"].get("uid"), live["metadata"]["uid"]
        if uid and uid != own:
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {own}"
            raise errors.conflict(target.resource.group, target.resource.plural, target.name, text)
        new = self._managed(target).update(live, new, manager_of(request), self.now())
        return Answer(200, self._updated(target, live, new, request.query), warnings)

    def patch(self, target: Target, request: Request) -> Answer:
        """Patch an object, by an apply or another patch."""
        if request.content_type == APPLY:
            return self._apply(target, request)
        patch, live = content.decoded(request.body), self.live(target)
        if request.content_type == JSON_PATCH:
            patched = patches.json_patched(live, patch)
        elif request.content_type == MERGE_PATCH:
            patched = patches.merge_patched(live, patch)
        else:
            raise errors.unknown_feature(f"a patch of the type {request.content_type}")
        warnings: list[str] = []
        body = content.checked(patched, target.resource)
        try:
            new = content.admitted(body, target.resource, request.query, warnings)
        except content.Undecodable as error:
            problems = [Problem("FieldValueInvalid", "patch", f"Invalid value: {error.text}")]
            raise errors.invalid("", "", "", problems) from error
        new = self._managed(target).update(live, new, manager_of(request), self.now())
        return Answer(200, self._updated(target, live, new, request.query), warnings)

    def _apply(self, target: Target, request: Request) -> Answer:
        manager, force = request.query.get("fieldManager", ""), request.query.get("force") == "true"
        if not manager:
            text = "Required value: is required for apply patch"
            raise errors.invalid(
                "meta.k8s.io", "PatchOptions", "", [Problem("FieldValueRequired", "fieldManager", text)]
            )
        applied = _applied(target, request)
        live = self.find(target)
        if live is None and target.subresource:
            raise errors.not_found(target.resource.group, target.resource.plural, target.name)
        managed = self._managed(target)
        merged = managed.apply(live or target.resource.empty, applied, manager, self.now(), force=force)
        empty = {name for name, value in merged["metadata"].items() if value in ({}, [])}
        merged = structural.prune(merged, target.resource.schema, "", [], resource=True)
        try:
            new = content.completed(merged, target.resource)
        except content.Undecodable as error:
            if error.is_too_large:
                raise errors.unknown_feature("an apply of a number that its field cannot hold") from error
            raise errors.internal(f"failed to convert new object: {error.text}") from error
        if live is None:
            if request.query.get("dryRun") != "All":
                new["metadata"].pop("resourceVersion", None)
            return Answer(201, self._created(target, new, request.query, empty))
        return Answer(200, self._updated(target, live, new, request.query, empty))

    def _managed(self, target: Target) -> FieldManager:
        ignored: Mapping[str, Any] = {}
        if target.subresource:
            ignored = (
                {"f:metadata": {}, "f:spec": {}}
                if target.resource.custom
                else {"f:metadata": {"f:labels": {}}, "f:spec": {}}
            )
        elif target.resource.has_status:
            ignored = {"f:status": {}}
        resource = target.resource
        version, resets = resource.api_version, not resource.custom
        return FieldManager(resource.type, version, ignored, target.subresource, resource.empty, resets)

    def _updated(
        self, target: Target, live: Object, new: Object, query: Mapping[str, str], empty: Collection[str] = ()
    ) -> Object:
        """Store a changed object, unless it is equal to the live one or its deletion is complete."""
        resource = target.resource
        self._check_version(target, live, new)
        new = self._prepared(target, live, new)
        self._check(new, resource, live, target.subresource)
        untidy = frozenset(empty) if resource.custom and not target.subresource else frozenset()
        if same(_untimed(live), _untimed(new)) and untidy == self.store.untidy(resource.storage, target.key):
            return live
        is_dry = query.get("dryRun") == "All"
        meta = new["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            if not is_dry:
                self.store.remove(resource.storage, target.key, new)
            shown: Object = {name: {} for name in ("labels", "annotations") if name in untidy}
            return {**new, "metadata": {**meta, **shown}}
        if is_dry:
            return new
        if resource.plural == "customresourcedefinitions":
            return self.store_crd(crds.completed(new, self.now()))
        return self.store.put(resource.storage, target.key, new, untidy)

    def _check_version(self, target: Target, live: Object, new: Object) -> None:
        resource = target.resource
        stated, current = new["metadata"].get("resourceVersion"), live["metadata"]["resourceVersion"]
        if not stated and resource.custom:
            text = "Invalid value: 0: must be specified for an update"
            problems = [Problem("FieldValueInvalid", "metadata.resourceVersion", text)]
            raise errors.invalid(resource.group, resource.plural, target.name, problems)
        if stated and stated != current:
            raise errors.conflict(resource.group, resource.plural, target.name)

    def _prepared(self, target: Target, live: Object, new: Object) -> Object:
        """Return the object with all fields that this endpoint may not change as they were."""
        before = live["metadata"]
        if target.subresource:
            entries = new["metadata"].get("managedFields")
            meta = {**_without(before, "managedFields"), **({"managedFields": entries} if entries else {})}
            new = _with_status_of(new, {**live, "metadata": meta})
        elif target.resource.has_status:
            new = _with_status_of(live, new)
        meta = {**new["metadata"], "resourceVersion": before["resourceVersion"]}
        for name in ("generation", "creationTimestamp", "deletionTimestamp"):
            meta.pop(name, None)
            meta |= {name: before[name]} if name in before else {}
        for name in ("uid", "deletionGracePeriodSeconds"):
            if name in before:
                meta.setdefault(name, before[name])
        if "generation" in before and not target.subresource and not same(_content(live), _content(new)):
            meta["generation"] = before["generation"] + 1
        return {**new, "metadata": meta}


def _applied(target: Target, request: Request) -> Object:
    """Return the body of an apply. Raise Refused for wrong metadata, and for fields that are not known here."""
    applied = content.checked(content.decoded(request.body), target.resource)
    if not applied["metadata"]:
        raise errors.bad_request("metadata is missing")
    place(applied["metadata"], target)
    check_name(applied["metadata"], target)
    unknown: list[str] = []
    structural.prune(applied, target.resource.schema, "", unknown, resource=True)
    wrong = merging.check(applied, target.resource.type)
    if unknown and not target.resource.is_complete and all(merging.UNDECLARED in text for text in wrong):
        raise errors.unknown_feature(f"the field {unknown[0]} of the kind {target.resource.kind}")
    return applied


def _without(fields: Object, name: str) -> Object:
    return {key: value for key, value in fields.items() if key != name}


def _with_status_of(source: Object, obj: Object) -> Object:
    """Return the object with the status of `source`, without one if `source` has none."""
    status = {"status": source["status"]} if "status" in source else {}
    return {**_without(obj, "status"), **status}


def in_version(obj: Object, resource: Resource) -> Object:
    """Return a stored object in a version."""
    if not resource.custom:
        return obj
    meta = obj["metadata"]
    key = (meta["uid"], meta["resourceVersion"])
    served = resource.served.get(key)
    if served is None:
        if len(resource.served) >= SERVED:
            resource.served.clear()
        served = schemas.defaulted({**obj, "apiVersion": resource.api_version}, resource.defaults)
        resource.served[key] = served
    return served


def _content(obj: Object) -> Object:
    """Return the part of an object whose changes its generation counts."""
    content = {key: value for key, value in obj.items() if key not in ("metadata", "apiVersion")}
    if obj["kind"] == "Deployment":
        content["annotations"] = obj["metadata"].get("annotations") or {}
    return content


def _untimed(obj: Object) -> Object:
    """Return the object without the times of its managers, which cause no write unless they change the order."""
    entries = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in obj["metadata"].get("managedFields") or ()
    ]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}
