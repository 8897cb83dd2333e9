"""Run a provider with the real runtime against an API server in memory."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.crd import model_deployments, provider_configs
from kubefoundry_sdk._api.kinds import EVENTS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._cluster.client import Client, over
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.run import parser, set_up
from kubefoundry_sdk._runtime import options, wall_clock
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk.testing._core import status_of
from kubefoundry_sdk.testing._server.requests import MERGE_PATCH, Answer, Request
from kubefoundry_sdk.testing._server.server import Server
from kubefoundry_sdk.testing._server.transport import CREDENTIALS, MemoryTransport
from kubefoundry_sdk.testing._simulated import SimulatedLoop

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The time at which every harness begins."""

SETTLE: Final = 5.0
"""Seconds that pass after each call, so that the provider can react."""

USER: Final = "user"
OPERATOR: Final = "upstream-operator"
NAMESPACE: Final = "default"

Failure = Literal["lost", "unsent", "conflict", "crash"]
"""How a write fails.

lost: The API server carries it out, and its answer is lost. unsent: It never arrives. conflict: Somebody else wrote
meanwhile. crash: The API server carries it out, and the process ends before it reads the answer.
"""


class Event(NamedTuple):
    """A Kubernetes Event that the provider sent.

    Attributes:
        type: `Normal` or `Warning`.
        reason: The reason.
        note: The message.
    """

    type: str
    reason: str
    note: str


@dataclass(frozen=True, slots=True)
class Write:
    """A write of the provider.

    Attributes:
        at: Seconds since the harness began.
        method: The HTTP method.
        path: The path of the object, with `/status` for its status.
        body: What was sent.
        code: The status code of the answer.
    """

    at: float
    method: str
    path: str
    body: Any
    code: int


class Unsupported(AssertionError):
    """The provider sent a request that the API server in memory does not implement; the text names it."""


class Harness:
    """A model, its provider with the real runtime, and an API server in memory.

    Use it as `async with Harness(provider, crd) as harness` in a test with the decorator `simulated`. After each call
    some seconds pass on a clock that only the test moves, so that the provider can react. The harness does the part
    of KubeFoundry's core: it chooses the provider, and the engine if the spec names none, and states that the spec is
    valid.

    Args:
        provider: The provider.
        crd: The CRD of the upstream; None for a built-in kind.
        name: The name of the model.
        flags: Flags of the provider's process, such as `["--stale-after=90s"]`.
    """

    def __init__(
        self, provider: Provider, crd: Object | None, *, name: str = "model", flags: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self._provider = provider
        self._flags = flags
        self._writes: list[Write] = []
        self._unsupported: list[str] = []
        self._failing: tuple[int, Failure] | None = None
        self._server = Server(self._now)
        self._loop: SimulatedLoop | None = None
        self._stack = ExitStack()
        self._running: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        for installed in (model_deployments(), provider_configs(), *([crd] if crd else [])):
            self._server.install(installed)
        for namespace in (NAMESPACE, names.SYSTEM_NAMESPACE):
            self._server.create_namespace(namespace)

    async def __aenter__(self) -> Harness:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, SimulatedLoop):
            raise RuntimeError("the harness needs a clock that the test moves: put @simulated above the test")
        self._loop = loop
        self._stack.enter_context(wall_clock.set_to(self._now))
        await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._end()
        finally:
            self._stack.close()

    @property
    def model(self) -> Object:
        """The ModelDeployment, empty if there is none."""
        return self.get(MODEL_DEPLOYMENTS, self.name)

    @property
    def status(self) -> Object:
        """The status of the ModelDeployment; empty if there is none."""
        return self.model.get("status") or {}

    @property
    def upstream_object(self) -> Object:
        """The object of the upstream, empty if there is none."""
        return self.get(self._kind(), self.name)

    @property
    def registration(self) -> Object:
        """The provider's InferenceProviderConfig, empty until it has registered."""
        return self.get(PROVIDER_CONFIGS, self._provider.name, None)

    @property
    def events(self) -> list[Event]:
        """The Events that the provider has sent, in their order."""
        stored = self._server.store.all((EVENTS.group, EVENTS.plural))
        stored.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [Event(event["type"], event["reason"], event["note"]) for event in stored]

    @property
    def writes(self) -> list[Write]:
        """The writes of the provider, in their order, without Events and its registration."""
        return [write for write in self._writes if _is_about_model(write.path)]

    def condition(self, type_: str) -> Object:
        """Return the condition of the ModelDeployment of this type; empty if there is none."""
        return next((item for item in self.status.get("conditions") or () if item["type"] == type_), {})

    def get(self, kind: Kind, name: str, namespace: str | None = NAMESPACE) -> Object:
        """Return any object as a reader sees it, empty if it does not exist."""
        answer = self._server.answer(Request("GET", path(kind, namespace, name)))
        return copy.deepcopy(answer.body) if answer.code == 200 else {}

    async def create(self, spec: Mapping[str, Any]) -> None:
        """Create the ModelDeployment with this spec. Raise ApiError if the API server refuses it."""
        chosen = {**(spec.get("provider") or {}), "name": self._provider.name}
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.MODEL_DEPLOYMENT,
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {**spec, "provider": chosen},
        }
        self._send("POST", path(MODEL_DEPLOYMENTS, NAMESPACE), body)
        await self._settle()

    async def edit(self, change: Mapping[str, Any]) -> None:
        """Merge a change into the spec, as a user does; None removes a field. Raise ApiError if it is refused."""
        self._send(
            "PATCH", path(MODEL_DEPLOYMENTS, NAMESPACE, self.name), {"spec": dict(change)}, MERGE_PATCH
        )
        await self._settle()

    async def annotate(self, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of the ModelDeployment; None removes one."""
        body = {"metadata": {"annotations": dict(annotations)}}
        self._send("PATCH", path(MODEL_DEPLOYMENTS, NAMESPACE, self.name), body, MERGE_PATCH)
        await self._settle()

    async def upstream(self, status: Mapping[str, Any]) -> None:
        """Replace the status of the upstream object, as the upstream's operator does."""
        live = self.upstream_object
        if not live:
            raise AssertionError(f"there is no {self._provider.upstream.kind} {self.name}: {self.status}")
        version = (self._crd_version() or {}).get("subresources") or {}
        suffix = "/status" if self._provider.upstream.version or "status" in version else ""
        url = path(self._kind(), NAMESPACE, self.name) + suffix
        self._send("PUT", url, {**live, "status": dict(status)}, manager=OPERATOR)
        await self._settle()

    def put(self, obj: Object, *, manager: str) -> None:
        """Replace any object, as another user or controller does. Raise ApiError if it is refused."""
        group, _, version = obj["apiVersion"].rpartition("/")
        resources = self._server.resources()
        meta = obj["metadata"]
        [plural] = [
            item.plural
            for item in resources
            if (item.group, item.version, item.kind) == (group, version, obj["kind"])
        ]
        kind = Kind(group, version, plural, obj["kind"])
        self._send("PUT", path(kind, meta.get("namespace"), meta["name"]), obj, manager=manager)

    async def delete(self) -> None:
        """Delete the ModelDeployment."""
        self._send("DELETE", path(MODEL_DEPLOYMENTS, NAMESPACE, self.name))
        await self._settle()

    async def restart(self, provider: Provider | None = None) -> None:
        """Stop the provider's process, and start it again, or a newer provider instead."""
        await self._end()
        self._provider = provider or self._provider
        await self._start()

    def fail_write(self, number: int, how: Failure) -> None:
        """Let one of the provider's next writes fail, without Events and its registration: 1 is the next one.

        After a `crash` the provider is gone until `restart`.
        """
        self._failing = (number, how)

    async def install(self, crd: Object) -> None:
        """Install a newer CRD of the upstream."""
        self._server.install(crd)
        await self._settle()

    async def advance(self, seconds: float) -> None:
        """Let seconds pass. Raise Unsupported if the provider needs more than the API server in memory knows."""
        assert self._loop is not None, "the harness is used outside its `async with`"
        await self._loop.advance(seconds)
        if self._running and self._running.done() and not self._running.cancelled():
            self._running.result()
        if self._unsupported:
            raise Unsupported(self._unsupported[0])

    async def _settle(self) -> None:
        self._do_core()
        await self.advance(SETTLE)

    def _do_core(self) -> None:
        """Choose the provider, and state that the spec is valid: the part of KubeFoundry's core."""
        live = self.model
        if not live or live["metadata"].get("deletionTimestamp"):
            return
        body = {key: live[key] for key in ("apiVersion", "kind")}
        body |= {"metadata": {"name": self.name, "namespace": NAMESPACE}}
        body["status"] = status_of(live, self._provider, self._now())
        url = path(MODEL_DEPLOYMENTS, NAMESPACE, self.name) + "/status"
        self._send("PATCH", url, body, "application/apply-patch+yaml", names.CORE_MANAGER, force="true")

    def _send(
        self,
        method: str,
        url: str,
        body: Any = None,
        content_type: str = "application/json",
        manager: str = USER,
        **query: str,
    ) -> None:
        raw = None if body is None else json.dumps(body).encode()
        request = Request(method, url, {"fieldManager": manager, **query}, raw, content_type)
        answer = self._server.answer(request)
        if answer.code >= 400:
            raise ApiError.from_status(answer.code, answer.body, request=f"{method} {url}")

    async def _start(self) -> None:
        self._stop = asyncio.Event()
        self._running = asyncio.create_task(self._run(self._stop))
        await self._settle()

    async def _end(self) -> None:
        assert self._loop is not None
        self._stop.set()
        for _ in range(10):
            await self._loop.advance(SETTLE)
            if self._running is None or self._running.done():
                break
        if self._running and not self._running.cancelled():
            self._running.result()
        self._running = None

    async def _run(self, stop: asyncio.Event) -> None:
        flags = [
            *self._flags,
            "--health-port=0",
            "--metrics-port=0",
            "--identity=harness",
            "--namespace=default",
        ]
        with options.without_variables():
            parsed = parser(self._provider.name).parse_args(flags)
        agent = f"kubefoundry-provider-{self._provider.name}"
        transport = MemoryTransport(
            self._server, user_agent=agent, asked=self._asked, answered=self._answered
        )
        async with over(Client(CREDENTIALS, user_agent=agent), transport) as client:
            process = Process(agent, parsed, client)
            set_up(process, self._provider)
            await process.run(stop)

    def _asked(self, request: Request) -> None:
        """Fail a write that must not arrive, or count down to it."""
        if not _may_fail(request) or self._failing is None:
            return
        number, how = self._failing
        if number > 1:
            self._failing = (number - 1, how)
        elif how == "unsent":
            self._failing = None
            raise Unreachable(f"{request.method} {request.path}: not sent")
        elif how == "conflict":
            self._failing = None
            raise ApiError(409, "Conflict", "the object has been modified")
        else:
            self._failing = (0, how)

    def _fail_answer(self, request: Request) -> None:
        if not _may_fail(request) or self._failing is None or self._failing[0] > 0:
            return
        how, self._failing = self._failing[1], None
        if how == "crash" and self._running:
            self._running.cancel()
        raise Unreachable(f"{request.method} {request.path}: the answer is lost")

    def _answered(self, request: Request, answer: Answer) -> None:
        if answer.code == 501:
            self._unsupported.append(f"{request.method} {request.path}: {answer.body['message']}")
        if _is_write(request):
            body = json.loads(request.body) if request.body else None
            assert self._loop is not None
            self._writes.append(Write(self._loop.time(), request.method, request.path, body, answer.code))
        self._fail_answer(request)

    def _crd_version(self) -> Object | None:
        """Return the storage version of the installed CRD, None for a built-in kind."""
        crd = self._server.store.get(
            ("apiextensions.k8s.io", "customresourcedefinitions"), ("", self._provider.upstream.crd)
        )
        stored = [version for version in crd["spec"]["versions"] if version.get("storage")] if crd else []
        return stored[0] if stored else None

    def _kind(self) -> Kind:
        upstream = self._provider.upstream
        version = upstream.version or (self._crd_version() or {}).get("name", "")
        return Kind(upstream.group, version, upstream.plural, upstream.kind)

    def _now(self) -> datetime:
        return BEGIN + timedelta(seconds=self._loop.time() if self._loop else 0)


def _is_about_model(url: str) -> bool:
    """Check whether a write is neither an Event nor the registration."""
    return f"/{EVENTS.plural}" not in url and f"/{PROVIDER_CONFIGS.plural}/" not in url


def _is_write(request: Request) -> bool:
    """Check whether a request may change an object: a dry run and a review change none."""
    return request.method != "GET" and request.query.get("dryRun") != "All" and "reviews" not in request.path


def _may_fail(request: Request) -> bool:
    return _is_write(request) and _is_about_model(request.path)
