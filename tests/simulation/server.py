"""The API server in memory, with admission policies and observers of each request."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.errors import Unreachable
from kubefoundry_sdk.testing._server.requests import Answer, Request, Target
from kubefoundry_sdk.testing._server.server import Server
from kubefoundry_sdk.testing._server.store import Change, Key, Storage, Store
from kubefoundry_sdk.testing._server.writes import Writes


class Place(NamedTuple):
    """The object that a path names; `name` is empty for a collection."""

    storage: Storage
    key: Key
    subresource: str = ""


def place_of(path: str, body: Any = None) -> Place:
    """Return the object of a path. The name of a created object is in the body."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    if not name and isinstance(body, dict):
        name = (body.get("metadata") or {}).get("name") or ""
    return Place((group, plural), (namespace, name), subresource)


@dataclass(frozen=True, slots=True)
class Write:
    """A request that may change an object, and its effect.

    Attributes:
        at: Simulated seconds.
        by: The user agent.
        method: The HTTP method.
        place: The object.
        is_dry: Whether it is a dry run.
        body: What was sent.
        code: The status code of the answer.
        reason: The message of a refusal.
        before: The object before, None if there was none.
        after: The object as answered.
    """

    at: float
    by: str
    method: str
    place: Place
    is_dry: bool
    body: Any
    code: int
    reason: str
    before: Object | None
    after: Object | None

    @property
    def ok(self) -> bool:
        """Whether the API server accepted it."""
        return self.code < 400


Policy = Callable[[Request, Place, Any, Object | None], "Request | Answer"]
"""Returns the request as admission changes it, or a refusal. Receives the body and the live object, too."""


Mutation = Callable[[str, Target, Object], Object]
"""Returns the object that a mutating webhook stores. Receives the user agent, the place, and a copy of the object."""


@dataclass(slots=True)
class MutableWrites(Writes):
    """Writes that webhooks change after the managers of the fields were noted, as in a real API server.

    Attributes:
        mutations: The webhooks, which see each create and update.
        agent: The user agent of the present request.
    """

    mutations: list[Mutation] = field(default_factory=list)
    agent: str = ""

    def _created(
        self, target: Target, new: Object, query: Mapping[str, str], empty: Collection[str] = ()
    ) -> Object:
        return Writes._created(self, target, self._mutated(target, new), query, empty)

    def _updated(
        self, target: Target, live: Object, new: Object, query: Mapping[str, str], empty: Collection[str] = ()
    ) -> Object:
        return Writes._updated(self, target, live, self._mutated(target, new), query, empty)

    def _mutated(self, target: Target, new: Object) -> Object:
        for change in self.mutations:
            new = change(self.agent, target, copy.deepcopy(new))
        return new


def refusal(code: int, reason: str, message: str, details: Object | None = None) -> Answer:
    """Return an answer that refuses a request."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return Answer(code, {**status, "message": message, **({"details": details} if details else {})})


@dataclass(slots=True)
class BreakableStore(Store):
    """A store whose watches can break.

    Attributes:
        broken: The resources whose watches break.
    """

    broken: set[Storage] = field(default_factory=set)

    def since(self, version: int, storage: Storage) -> list[Change]:
        """Return the changes of a resource after a version. Raise Unreachable if its watches break."""
        if storage in self.broken:
            raise Unreachable(f"WATCH {storage[1]}: connection reset by peer")
        return Store.since(self, version, storage)

    def break_watches(self, storage: Storage) -> Callable[[], None]:
        """Break the watches of a resource, and return the end of that."""
        self.broken.add(storage)
        for listener in list(self.listeners[storage]):
            listener()
        return lambda: self.broken.discard(storage)


@dataclass
class SimulatedServer(Server):
    """An API server whose writes are observed.

    Attributes:
        time: Returns simulated seconds.
        policies: Admission policies and other refusals, by name.
        observers: Called with each write after it was answered.
    """

    time: Callable[[], float] = lambda: 0.0
    store: BreakableStore = field(default_factory=BreakableStore)
    policies: dict[str, Policy] = field(default_factory=dict)
    observers: list[Callable[[Write], None]] = field(default_factory=list)
    _writes: MutableWrites = field(init=False)

    def __post_init__(self) -> None:
        Server.__post_init__(self)
        self._writes = MutableWrites(self.store, self._time)

    @property
    def mutations(self) -> list[Mutation]:
        """The mutating webhooks."""
        return self._writes.mutations

    def answer(self, request: Request) -> Answer:
        """Answer a request, after the policies."""
        body = json.loads(request.body) if request.body else None
        is_write = request.method != "GET" and "reviews" not in request.path
        place = place_of(request.path, body)
        before = self.store.get(place.storage, place.key)
        answer = self._admitted(request, place, body, before)
        if is_write:
            after = answer.body if answer.code < 400 and request.method != "DELETE" else None
            is_dry = request.query.get("dryRun") == "All"
            reason = str(answer.body.get("message") or "") if answer.code >= 400 else ""
            agent = request.user_agent
            write = Write(
                *(self.time(), agent, request.method, place, is_dry, body, answer.code, reason, before, after)
            )
            for observer in self.observers:
                observer(write)
        return answer

    def _admitted(self, request: Request, place: Place, body: Any, before: Object | None) -> Answer:
        for policy in list(self.policies.values()):
            decided = policy(request, place, body, before)
            if isinstance(decided, Answer):
                return decided
            request = decided
        self._writes.agent = request.user_agent
        return super().answer(request)
