"""Random sequences of requests about one object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Literal

from kubefoundry_sdk._api.kinds import CONFIG_MAPS, DEPLOYMENTS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind
from support.differential import values
from support.differential.values import Content, Maker, Values

MANAGERS: Final = ("alpha", "beta", "gamma")
Given = Literal["current", "stale", "none"]


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of the test.

    Attributes:
        kind: The kind.
        content: Makes the spec, or the whole content if `whole`.
        status: Makes the status; None without the subresource.
        whole: Whether `content` has the fields of the object itself.
    """

    kind: Kind
    content: Maker
    status: Maker | None
    whole: bool = False


SUBJECTS: Final = (
    Subject(Kind("differential.example.com", "v1", "gadgets", "Gadget"), values.gadget, values.gadget_status),
    Subject(Kind("differential.example.com", "v1", "plaingadgets", "PlainGadget"), values.gadget, None),
    Subject(MODEL_DEPLOYMENTS, values.model, values.model_status),
    Subject(PROVIDER_CONFIGS, values.provider_config, values.provider_config_status),
    Subject(CONFIG_MAPS, values.config_map, None, whole=True),
    Subject(DEPLOYMENTS, values.deployment, values.deployment_status, whole=True),
)


@dataclass(slots=True)
class Step:
    """A request before its dynamic parts are known.

    Attributes:
        method: The HTTP method.
        body: The body, or changes to the live object for `edit`.
        query: The parameters.
        content_type: The type of the body.
        subresource: `/status` or empty.
        version: The resource version to put into the body or the preconditions.
        uid: The uid to put there.
        edit: Whether the body is merged into the live object first (a read, a change and a write).
        collection: Whether the request is about the collection.
    """

    method: str
    body: Any = None
    query: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    subresource: str = ""
    version: Given = "none"
    uid: Given = "none"
    edit: bool = False
    collection: bool = False


class Sequence:
    """The requests of a seed about an object of a name."""

    def __init__(self, seed: int, subjects: tuple[Subject, ...] = SUBJECTS) -> None:
        self.random = Random(seed)
        self.seed = seed
        self.subject = self.random.choice(subjects)
        self.name = f"s{seed}"
        # An apply to a built-in kind stores a part of a number that is too large.
        kind = self.subject.kind
        self._values = Values(self.random, small=kind.built_in, unknown=kind != DEPLOYMENTS)

    def steps(self) -> Iterator[Step]:
        """Yield the requests."""
        yield self._first()
        for _ in range(self.random.randint(3, 9)):
            yield self._next()

    def _first(self) -> Step:
        return self._create() if self.random.random() < 0.4 else self._apply()

    def _next(self) -> Step:
        makers = (
            *(self._apply,) * 6,
            *(self._status,) * (5 if self.subject.status else 0),
            *(self._put, self._merge_patch, self._json_patch) * 2,
            *(self._create, self._delete, self._list, self._metadata),
        )
        return self.random.choice(makers)()

    def _create(self) -> Step:
        return Step("POST", self._object(), self._query(), collection=True)

    def _apply(self) -> Step:
        query = self._query(force=True)
        body = self._object()
        version: Given = (
            "stale" if self.random.random() < 0.02 else "current" if self.random.random() < 0.02 else "none"
        )
        return Step("PATCH", body, query, "application/apply-patch+yaml", version=version)

    def _status(self) -> Step:
        assert self.subject.status
        body = self._head()
        body["status"] = self.subject.status(self._values)
        if self.random.random() < 0.1:
            body |= self._content()
        kind = self.random.choice(("apply", "apply", "apply", "put", "merge"))
        if kind == "apply":
            query = self._query(force=True)
            return Step("PATCH", body, query, "application/apply-patch+yaml", "/status")
        if kind == "put":
            return Step("PUT", body, self._query(), subresource="/status", version=self._version(), edit=True)
        del body["metadata"]
        return Step("PATCH", body, self._query(), "application/merge-patch+json", "/status")

    def _put(self) -> Step:
        body = self._object()
        if self._chance(0.15):
            # Resets the ownership, or leaves it to the server.
            body["metadata"]["managedFields"] = self.random.choice(([], [{}]))
        return Step("PUT", body, self._query(), version=self._version(), edit=self._chance(0.8))

    def _merge_patch(self) -> Step:
        body = self._content()
        spec = body.get("spec", body)
        if self._chance(0.4) and spec:
            spec[self.random.choice(list(spec))] = None
        if self._chance(0.3):
            body["metadata"] = self._metadata_part()
        return Step("PATCH", body, self._query(), "application/merge-patch+json")

    def _json_patch(self) -> Step:
        spec = self._content().get("spec") or ({} if self.subject.whole else {"size": 1})
        operations: list[Any] = []
        for name, value in list(spec.items())[:2]:
            prefix = "" if self.subject.whole and "spec" not in self._content() else "/spec"
            op = self.random.choice(("add", "add", "replace", "remove", "test"))
            operations.append(
                {"op": op, "path": f"{prefix}/{name}", **({} if op == "remove" else {"value": value})}
            )
        if self._chance(0.3):
            operations.append({"op": "add", "path": "/metadata/labels", "value": self._values.mapping()})
        if self._chance(0.2):
            operations.append({"op": "add", "path": "/metadata/finalizers", "value": self._finalizers()})
        return Step("PATCH", operations, self._query(), "application/json-patch+json")

    def _metadata(self) -> Step:
        part = self._metadata_part()
        return Step("PATCH", {"metadata": part}, self._query(), "application/merge-patch+json")

    def _delete(self) -> Step:
        body: Content = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {}}
        query = {"dryRun": "All"} if self._chance(0.2) else {}
        uid: Given = self.random.choice(("current", "current", "none", "stale"))
        version: Given = self.random.choice(("none", "none", "current", "stale"))
        return Step("DELETE", body, query, uid=uid, version=version)

    def _list(self) -> Step:
        query = {"fieldSelector": f"metadata.name={self.name}"}
        if self._chance(0.5):
            query["labelSelector"] = self.random.choice(
                ("a", "!a", "a=b", "a!=b", "b in (a, b)", "b notin (a,b)", "a,b", "a==a,!dd")
            )
        return Step("GET", None, query, collection=True)

    def _query(self, *, force: bool = False) -> dict[str, str]:
        query = {"fieldManager": self.random.choice(MANAGERS)}
        if force and self._chance(0.5):
            query["force"] = "true"
        if self._chance(0.1):
            query["dryRun"] = "All"
        if self.subject.kind.built_in or self._chance(0.5):
            query["fieldValidation"] = "Strict"
        return query

    def _version(self) -> Given:
        return self.random.choice(("current", "current", "current", "stale", "none"))

    def _object(self) -> Content:
        body = {**self._head(), **self._content()}
        body["metadata"] |= self._metadata_part() if self._chance(0.4) else {}
        if self.subject.status and self._chance(0.05):
            body["status"] = self.subject.status(self._values)
        return body

    def _head(self) -> Content:
        kind = self.subject.kind
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": self.name}}

    def _content(self) -> Content:
        content = self.subject.content(self._values)
        return content if self.subject.whole else {"spec": content}

    def _metadata_part(self) -> Content:
        part = self._values.some(labels=self._values.mapping, annotations=self._values.mapping)
        part = {name: value for name, value in part.items() if isinstance(value, dict) and name != "unheard"}
        if self._chance(0.03):
            part["labels"] = {"a": self.random.choice(("-", "a b", "", "é"))}
        if self._chance(0.15):
            part["finalizers"] = self._finalizers()
        return part

    def _finalizers(self) -> list[str]:
        return [f"example.com/{name}" for name in self._values.texts(2)]

    def _chance(self, share: float) -> bool:
        return self.random.random() < share
