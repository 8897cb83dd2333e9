"""Answers requests as the API server does: routes them, and carries out reads, writes and deletions."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing._server import (
    collection,
    content,
    crds,
    errors,
    metadata,
    patches,
    schemas,
    workloads,
)
from kubefoundry_sdk.testing._server.errors import Problem, Refused
from kubefoundry_sdk.testing._server.managers import FieldManager
from kubefoundry_sdk.testing._server.resources import BUILT_IN, Resource, of_crd
from kubefoundry_sdk.testing._server.selectors import Selects, selecting
from kubefoundry_sdk.testing._server.store import Key, Store

APPLY: Final = "application/apply-patch+yaml"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
METADATA_ONLY: Final = "PartialObjectMetadata"


class Request(NamedTuple):
    """A request: method, path, parameters, body and two headers."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = ""
    accept: str = ""
    user_agent: str = ""


@dataclass(slots=True)
class Answer:
    """An answer: status code, body, and the texts of warnings."""

    code: int
    body: Object
    warnings: list[str] = field(default_factory=list)


class Target(NamedTuple):
    """What a path names. `name` is empty for a collection."""

    resource: Resource
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        """Return the key in the store."""
        return self.namespace, self.name


@dataclass(slots=True)
class Server:
    """An API server.

    Attributes:
        now: Returns the current time.
        store: The objects.
    """

    now: Callable[[], datetime]
    store: Store = field(default_factory=Store)
    _untidy: dict[tuple[str, str, str, str], set[str]] = field(default_factory=dict)
    """Fields of the metadata that are empty in etcd, by custom resource: an apply stores them, no other request does,
    and no answer shows them. The next request that does not state them is a write."""
    _pages: dict[str, tuple[str, list[Object]]] = field(default_factory=dict)

    def install(self, crd: Object) -> None:
        """Install a CRD or a newer version of it."""
        self._store_crd(crds.completed(crd, self._time()))

    def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.answer(Request("POST", "/api/v1/namespaces", {}, _encoded(body)))

    def answer(self, request: Request) -> Answer:
        """Answer a request that is not a watch."""
        try:
            answer = self._answer(request)
        except Refused as error:
            return Answer(error.code, error.status)
        if request.method != "GET" and request.query.get("dryRun") != "All":
            collection.collect(self.store, self._time())
        if METADATA_ONLY in request.accept and "metadata" in answer.body and "items" not in answer.body:
            answer.body = {
                "kind": METADATA_ONLY,
                "apiVersion": "meta.k8s.io/v1",
                "metadata": answer.body["metadata"],
            }
        return answer

    def watched(self, request: Request) -> tuple[Resource, str, Selects, int]:
        """Return the resource, namespace, selection and first version of a watch. Raise Refused."""
        target = self._target(request.path)
        version = request.query.get("resourceVersion", "")
        if not version.isdecimal() or version == "0":
            raise errors.unknown_feature("a watch without a resource version")
        if int(version) < self.store.oldest:
            raise errors.Refused(410, "Expired", f"too old resource version: {version} ({self.store.oldest})")
        return target.resource, target.namespace, selecting(target.resource, request.query), int(version)

    def _answer(self, request: Request) -> Answer:
        if request.path == "/version":
            return Answer(200, {"major": "1", "minor": "36", "gitVersion": "v1.36.0"})
        if request.path.endswith("/selfsubjectaccessreviews"):
            return Answer(201, {**content.decoded(request.body), "status": {"allowed": True}})
        if (listed := self._discovered(request.path)) is not None:
            return Answer(200, listed)
        target = self._target(request.path)
        match request.method, bool(target.name):
            case "GET", True:
                return Answer(200, self._get(target))
            case "GET", False:
                return Answer(200, self._list(target, request.query))
            case "POST", False:
                return self._create(target, request)
            case "PUT", True:
                return self._replace(target, request)
            case "PATCH", True:
                return self._patch(target, request)
            case "DELETE", True:
                return self._delete(target, request)
            case _:
                raise errors.unknown_feature(f"{request.method} {request.path}")

    def _resources(self) -> list[Resource]:
        custom = [
            resource
            for crd in self.store.all(("apiextensions.k8s.io", "customresourcedefinitions"))
            for resource in crds.served(crd, of_crd)
        ]
        return [*BUILT_IN, *custom]

    def _discovered(self, path: str) -> Object | None:
        """Return the resources of a group and version, None if the path is another one."""
        parts = path.strip("/").split("/")
        if not ((parts[0] == "api" and len(parts) == 2) or (parts[0] == "apis" and len(parts) == 3)):
            return None
        api_version = "/".join(parts[1:])
        found = [resource for resource in self._resources() if resource.api_version == api_version]
        if not found:
            raise Refused(404, "", "404 page not found")
        listed = [
            {
                "name": item.plural,
                "kind": item.kind,
                "namespaced": item.namespaced,
                "singularName": "",
                "verbs": [],
            }
            for item in found
        ]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": api_version,
            "resources": listed,
        }

    def _target(self, path: str) -> Target:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[0] not in ("api", "apis"):
            raise errors.unknown_feature(f"the path {path}")
        api_version, rest = (
            ("/".join(parts[1:2]), parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        )
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        if not rest or len(rest) > 3:
            raise errors.not_served()
        plural, name, subresource = (*rest, "", "")[:3]
        for resource in self._resources():
            if (resource.api_version, resource.plural) == (api_version, plural):
                if subresource and subresource != "status":
                    raise errors.unknown_feature(f"the subresource {subresource}")
                if (subresource and not resource.has_status) or (namespace and not resource.namespaced):
                    raise errors.not_served()
                return Target(resource, namespace, name, subresource)
        raise errors.not_served()

    def _live(self, target: Target) -> Object:
        live = self._find(target)
        if live is None:
            raise errors.not_found(target.resource.group, target.resource.plural, target.name)
        return live

    def _find(self, target: Target) -> Object | None:
        live = self.store.get(target.resource.storage, target.key)
        return self.in_version(live, target.resource) if live is not None else None

    def in_version(self, obj: Object, resource: Resource) -> Object:
        """Return a stored object in a version."""
        if not resource.custom:
            return obj
        served: Object = schemas.defaulted({**obj, "apiVersion": resource.api_version}, resource.schema)
        return served

    def _get(self, target: Target) -> Object:
        return self._live(target)

    def _list(self, target: Target, query: Mapping[str, str]) -> Object:
        resource = target.resource
        head = {"apiVersion": resource.api_version, "kind": resource.list_kind}
        if token := query.get("continue"):
            if token not in self._pages:
                raise errors.Refused(410, "Expired", "The provided continue parameter is too old")
            version, items = self._pages.pop(token)
        else:
            selects = selecting(resource, query)
            version = str(self.store.version)
            items = [
                self.in_version(obj, resource)
                for obj in self.store.all(resource.storage)
                if target.namespace in ("", obj["metadata"].get("namespace", "")) and selects(obj)
            ]
        limit = int(query.get("limit") or 0) or len(items)
        meta: Object = {"resourceVersion": version}
        if rest := items[limit:]:
            meta["continue"] = uuid.uuid4().hex
            if not query.get("labelSelector") and not query.get("fieldSelector"):
                meta["remainingItemCount"] = len(rest)
            self._pages[meta["continue"]] = (version, rest)
        return {**head, "metadata": meta, "items": items[:limit]}

    def _create(self, target: Target, request: Request) -> Answer:
        if target.subresource:
            raise errors.not_served()
        warnings: list[str] = []
        body = content.checked(content.decoded(request.body), target.resource)
        new = content.admitted(body, target.resource, request.query, warnings)
        meta = new["metadata"]
        _place(meta, target)
        if "name" not in meta and "generateName" in meta:
            meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
        target = target._replace(name=meta.get("name", ""))
        new = self._managed(target).update(target.resource.empty, new, _manager(request), self._time())
        return Answer(201, self._created(target, new, request.query), warnings)

    def _created(
        self, target: Target, new: Object, query: Mapping[str, str], empty: Collection[str] = ()
    ) -> Object:
        """Store a new object, with the metadata that only the server sets."""
        resource = target.resource
        if not target.name:
            text = "Required value: name or generateName is required"
            problems = [Problem("FieldValueRequired", "metadata.name", text)]
            raise errors.invalid(resource.group, resource.kind, "", problems)
        self._check_namespace(target)
        if new["metadata"].get("resourceVersion") and query.get("dryRun") != "All":
            raise Refused(500, "", "resourceVersion should not be set on objects to be created")
        meta = {**new["metadata"], "uid": str(uuid.uuid4()), "creationTimestamp": self._time()}
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"):
            meta.pop(name, None)
        new = {**new, "metadata": meta}
        if resource.has_status and resource.custom:
            new.pop("status", None)
        elif resource.has_status:
            new["status"] = {}
        if resource.custom or resource.plural == "deployments":
            meta["generation"] = 1
        self._check(new, resource)
        if self.store.get(resource.storage, target.key) is not None:
            raise errors.already_exists(resource.group, resource.plural, target.name)
        if query.get("dryRun") == "All":
            return new
        if resource.plural == "customresourcedefinitions":
            return self._store_crd(crds.completed(new, self._time()))
        self._untidy[*resource.storage, *target.key] = set(empty) if resource.custom else set()
        return self.store.put(resource.storage, target.key, new)

    def _store_crd(self, crd: Object) -> Object:
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
            found = [*schemas.problems(obj, resource.schema, resource.scale), *found]
        elif resource.plural == "deployments":
            is_status = bool(subresource)
            found += [
                *(
                    workloads.deployment_status_problems(obj)
                    if is_status
                    else workloads.deployment_problems(old, obj)
                )
            ]
        if found:
            raise errors.invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), found)

    def _replace(self, target: Target, request: Request) -> Answer:
        warnings: list[str] = []
        body = content.checked(content.decoded(request.body), target.resource)
        new = content.admitted(body, target.resource, request.query, warnings)
        _place(new["metadata"], target)
        named = new["metadata"].setdefault("name", target.name)
        if named != target.name:
            raise errors.bad_request(
                f"the name of the object ({named}) does not match the name on the URL ({target.name})"
            )
        live = self._live(target)
        uid, own = new["metadata"].get("uid"), live["metadata"]["uid"]
        if uid and uid != own:
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {own}"
            raise errors.conflict(target.resource.group, target.resource.plural, target.name, text)
        new = self._managed(target).update(live, new, _manager(request), self._time())
        return Answer(200, self._updated(target, live, new, request.query), warnings)

    def _patch(self, target: Target, request: Request) -> Answer:
        if request.content_type == APPLY:
            return self._apply(target, request)
        patch, live = content.decoded(request.body), self._live(target)
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
        new = self._managed(target).update(live, new, _manager(request), self._time())
        return Answer(200, self._updated(target, live, new, request.query), warnings)

    def _apply(self, target: Target, request: Request) -> Answer:
        manager, force = request.query.get("fieldManager", ""), request.query.get("force") == "true"
        if not manager:
            text = "Required value: is required for apply patch"
            raise errors.invalid(
                "meta.k8s.io", "PatchOptions", "", [Problem("FieldValueRequired", "fieldManager", text)]
            )
        applied = content.checked(content.decoded(request.body, yaml_text=True), target.resource)
        if not applied["metadata"]:
            raise errors.bad_request("metadata is missing")
        _place(applied["metadata"], target)
        if applied["metadata"].setdefault("name", target.name) != target.name:
            raise errors.bad_request(
                f"the name of the object ({applied['metadata']['name']}) does not match the name on the URL "
                f"({target.name})"
            )
        live = self._find(target)
        if live is None and target.subresource:
            raise errors.not_found(target.resource.group, target.resource.plural, target.name)
        managed = self._managed(target)
        merged = managed.apply(live or target.resource.empty, applied, manager, self._time(), force=force)
        empty = {name for name, value in merged["metadata"].items() if value in ({}, [])}
        merged = schemas.prune(merged, target.resource.schema, "", [], resource=True)
        try:
            new = content.completed(merged, target.resource)
        except content.Undecodable as error:
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
        return FieldManager(resource.type, resource.api_version, ignored, target.subresource, resource.empty)

    def _updated(
        self, target: Target, live: Object, new: Object, query: Mapping[str, str], empty: Collection[str] = ()
    ) -> Object:
        """Store a changed object, unless it is equal to the live one or its deletion is complete."""
        resource = target.resource
        self._check_version(target, live, new)
        new = self._prepared(target, live, new)
        found = [*metadata.update_problems(live, new, resource)]
        if found:
            raise errors.invalid(resource.group, resource.kind, target.name, found)
        self._check(new, resource, live, target.subresource)
        place = (*resource.storage, *target.key)
        untidy = set(empty) if resource.custom and not target.subresource else set()
        if same(_untimed(live), _untimed(new)) and untidy == self._untidy.get(place, set()):
            return live
        is_dry = query.get("dryRun") == "All"
        meta = new["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            if not is_dry:
                self.store.remove(resource.storage, target.key, new)
            return new
        if is_dry:
            return new
        if resource.plural == "customresourcedefinitions":
            return self._store_crd(crds.completed(new, self._time()))
        self._untidy[place] = untidy
        return self.store.put(resource.storage, target.key, new)

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
        resource, before = target.resource, live["metadata"]
        if target.subresource:
            entries = new["metadata"].get("managedFields")
            meta = {key: value for key, value in before.items() if key != "managedFields"}
            meta |= {"managedFields": entries} if entries else {}
            kept = {key: value for key, value in live.items() if key != "status"}
            new = {**kept, "metadata": meta, **({"status": new["status"]} if "status" in new else {})}
        elif resource.has_status:
            kept = {key: value for key, value in new.items() if key != "status"}
            new = {**kept, **({"status": live["status"]} if "status" in live else {})}
        meta = {**new["metadata"], "resourceVersion": before["resourceVersion"]}
        for name in ("generation", "creationTimestamp", "deletionTimestamp"):
            meta.pop(name, None)
            meta |= {name: before[name]} if name in before else {}
        for name in ("uid", "deletionGracePeriodSeconds"):
            if name in before:
                meta.setdefault(name, before[name])
        if "generation" in before and not same(_content(live), _content(new)):
            # The status of a kind without the subresource is content, too.
            is_status = bool(target.subresource)
            meta["generation"] = before["generation"] + (0 if is_status else 1)
        return {**new, "metadata": meta}

    def _delete(self, target: Target, request: Request) -> Answer:
        if target.subresource:
            raise errors.not_served()
        if target.resource.plural == "namespaces":
            raise errors.unknown_feature("the deletion of a namespace")
        # Parameters count only without a body.
        options: Any = content.decoded(request.body) if request.body else dict(request.query)
        live = self._live(target)
        self._check_preconditions(target, live, options.get("preconditions") or {})
        is_dry = "All" in (options.get("dryRun") or ())
        policy = options.get("propagationPolicy") or "Background"
        meta = live["metadata"]
        finalizers = [
            name
            for name in meta.get("finalizers") or ()
            if name not in (collection.FOREGROUND, collection.ORPHAN)
        ]
        finalizers += {"Foreground": [collection.FOREGROUND], "Orphan": [collection.ORPHAN]}.get(policy, [])
        if not finalizers:
            if not is_dry:
                self.store.remove(target.resource.storage, target.key, live)
                self._remove_objects_of(target)
            return Answer(200, _deleted(target, meta["uid"]))
        marked = _marked(live, finalizers, self._time())
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

    def _check_preconditions(self, target: Target, live: Object, stated: Mapping[str, Any]) -> None:
        meta, resource = live["metadata"], target.resource
        for name, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if stated.get(name) not in (None, meta[name]):
                text = (
                    f"the {title} in the precondition ({stated[name]}) does not match the {title} in record "
                    f"({meta[name]}). The object might have been "
                    + ("deleted and then recreated" if name == "uid" else "modified")
                )
                raise errors.conflict(resource.group, resource.kind, target.name, text)

    def _time(self) -> str:
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _place(meta: Object, target: Target) -> None:
    """Set the namespace of the URL. Raise Refused if the object names another one."""
    if not target.resource.namespaced:
        if meta.get("namespace"):
            raise errors.bad_request("namespace provided for a cluster-scoped object")
        return
    if meta.setdefault("namespace", target.namespace) != target.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _manager(request: Request) -> str:
    return request.query.get("fieldManager") or request.user_agent.partition("/")[0] or "unknown"


def _marked(live: Object, finalizers: list[str], now: str) -> Object:
    """Return the object as its deletion has begun."""
    meta = {**live["metadata"], "finalizers": finalizers}
    if "deletionTimestamp" not in meta:
        meta |= {"deletionTimestamp": now, "deletionGracePeriodSeconds": 0}
        if "generation" in meta:
            meta["generation"] += 1
    return {**live, "metadata": meta}


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


def _content(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "apiVersion")}


def _untimed(obj: Object) -> Object:
    """Return the object without the times of its managers, which alone cause no write."""
    entries = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in obj["metadata"].get("managedFields") or ()
    ]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": sorted(entries, key=str)}}


def _encoded(body: Object) -> bytes:
    return json.dumps(body).encode()
