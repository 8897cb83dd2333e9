"""Answers requests as the API server does: routes them, and carries out reads, writes and deletions."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import unquote

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing._server import collection, content, crds, errors
from kubefoundry_sdk.testing._server.deletion import Deletions
from kubefoundry_sdk.testing._server.errors import Refused
from kubefoundry_sdk.testing._server.requests import METADATA_ONLY, Answer, Request, Target
from kubefoundry_sdk.testing._server.resources import BUILT_IN, Resource, of_crd
from kubefoundry_sdk.testing._server.selectors import Selects, selecting
from kubefoundry_sdk.testing._server.store import Store
from kubefoundry_sdk.testing._server.writes import Writes, in_version


@dataclass(slots=True)
class Server:
    """An API server.

    Attributes:
        now: Returns the current time.
        store: The objects.
        collects: Whether the garbage collector runs.
    """

    now: Callable[[], datetime]
    store: Store = field(default_factory=Store)
    collects: bool = True
    _pages: dict[str, tuple[str, list[Object]]] = field(default_factory=dict)
    _writes: Writes = field(init=False)
    _deletions: Deletions = field(init=False)

    def __post_init__(self) -> None:
        self._writes = Writes(self.store, self._time)
        self._deletions = Deletions(self.store, self._time)

    def install(self, crd: Object) -> None:
        """Install a CRD or a newer version of it."""
        self._writes.store_crd(crds.completed(crd, self._time()))

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
        if self.collects and request.method != "GET" and request.query.get("dryRun") != "All":
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
                return Answer(200, self._writes.live(target))
            case "GET", False:
                return Answer(200, self._list(target, request.query))
            case "POST", False:
                return self._writes.create(target, request)
            case "PUT", True:
                return self._writes.replace(target, request)
            case "PATCH", True:
                return self._writes.patch(target, request)
            case "DELETE", True:
                return self._deletions.delete(target, self._writes.live(target), request)
            case _:
                raise errors.unknown_feature(f"{request.method} {request.path}")

    def resources(self) -> list[Resource]:
        """Return the served resources."""
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
        found = [resource for resource in self.resources() if resource.api_version == api_version]
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
        api_version, namespace, plural, name, subresource = _parts(path)
        for resource in self.resources():
            if (resource.api_version, resource.plural) == (api_version, plural):
                if subresource and subresource != "status":
                    raise errors.unknown_feature(f"the subresource {subresource}")
                if (subresource and not resource.has_status) or (namespace and not resource.namespaced):
                    raise errors.not_served()
                return Target(resource, namespace, name, subresource)
        raise errors.not_served()

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
                _item(in_version(obj, resource), resource)
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

    def _time(self) -> str:
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _item(obj: Object, resource: Resource) -> Object:
    """Return the object as an item of a list. Those of built-in kinds do not name their kind and version."""
    if resource.custom:
        return obj
    return {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}


def _encoded(body: Object) -> bytes:
    return json.dumps(body).encode()


def _parts(path: str) -> tuple[str, str, str, str, str]:
    """Return API version, namespace, plural, name and subresource of a path."""
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
    return api_version, namespace, plural, name, subresource
