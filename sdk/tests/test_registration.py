"""A provider's InferenceProviderConfig: made, kept alive, made again, and never fought over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
from aiohttp import web

from kubefoundry_sdk._api import managed_fields
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.registration import Registration, upstream_condition
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema, UpstreamKind
from kubefoundry_sdk._provider.watch.upstream import Upstream
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.process import Process
from support.plans import provider
from support.waiting import SECONDS
from support.wire import Asked, ok, refusal, wire

CONFIG = "/apis/kubefoundry.ai/v1alpha1/inferenceproviderconfigs/example"


def stored(asked: Asked) -> Object:
    """Return the object after an apply: the manager owns what it sent."""
    subresource = asked.path.removeprefix(CONFIG).removeprefix("/")
    fields: Object = {
        f"f:{part}": managed_fields.fields_of(asked.body[part])
        for part in ("spec", "status")
        if part in asked.body
    }
    annotations = asked.body["metadata"].get("annotations") or {}
    fields["f:metadata"] = {"f:annotations": managed_fields.fields_of(annotations)}
    entry = {"manager": asked.query["fieldManager"], "operation": "Apply", "fieldsV1": fields}
    entry |= {"subresource": subresource} if subresource else {}
    return {**asked.body, "metadata": {**asked.body["metadata"], "managedFields": [entry]}}


@dataclass(slots=True)
class Server:
    """The API server. `refuse` is called first for each request; `written` has the accepted ones."""

    refuse: Callable[[Asked], web.Response | None] = lambda asked: None
    written: list[Asked] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, asked: Asked) -> web.Response:
        if refused := self.refuse(asked):
            return refused
        self.written.append(asked)
        self.changed.set()
        return ok(stored(asked))

    async def until(self, holds: Callable[[list[Asked]], bool]) -> list[Asked]:
        async with asyncio.timeout(SECONDS):
            while not holds(self.written):
                self.changed.clear()
                await self.changed.wait()
        return self.written

    def heartbeats(self) -> int:
        return sum(asked.path == f"{CONFIG}/status" for asked in self.written)


@asynccontextmanager
async def registered(server: Server) -> AsyncIterator[None]:
    """A provider whose upstream CRD is looked for and not there, registering for as long as the block lasts, its
    heartbeats as close together as they may be."""
    async with wire(server.answer) as api:
        process = Process("t", options.parser("t", "").parse_args([]), api.client)
        upstream = Upstream(process, provider(), "example-provider", lambda: None)
        upstream.replace([], "1")
        task = asyncio.create_task(
            Registration(api.client, provider(), upstream, None, process.recorder, interval=0).run()
        )
        try:
            yield
        finally:
            task.cancel()


async def test_registration_sends_heartbeats_while_provider_runs() -> None:
    server = Server()

    async with registered(server):
        written = await server.until(lambda _: server.heartbeats() >= 2)

    assert [asked.path for asked in written[:2]] == [CONFIG, f"{CONFIG}/status"]
    assert all(asked.body["status"]["lastHeartbeat"] for asked in written[1:])
    assert written[1].body["status"]["ready"] is False


async def test_deleted_by_an_admin_it_is_made_again() -> None:
    server = Server()
    async with registered(server):
        await server.until(lambda _: server.heartbeats() >= 1)

        refused = 0

        def gone_once(asked: Asked) -> web.Response | None:
            nonlocal refused
            if refused or not asked.path.endswith("/status"):
                return None
            refused += 1
            return refusal(404, "NotFound")

        server.refuse = gone_once
        before = len(server.written)
        await server.until(lambda written: any(asked.path == CONFIG for asked in written[before:]))

    assert refused == 1


def conflict(manager: str, path: str) -> web.Response:
    """Return the answer to an apply without force over a field of another manager."""
    cause = {"reason": "FieldManagerConflict", "message": f'conflict with "{manager}"', "field": path}
    message = f'Apply failed with 1 conflict: conflict with "{manager}": {path}'
    return refusal(409, "Conflict", message, details={"causes": [cause]})


async def test_rules_of_an_admin_stay_the_admins() -> None:
    server = Server()
    server.refuse = lambda asked: (
        conflict("kubectl-edit", ".spec.selectionRules")
        if "selectionRules" in asked.body.get("spec", {})
        else None
    )

    async with registered(server):
        written = await server.until(lambda _: server.heartbeats() >= 1)

    applied, reported = written[:2]
    assert "selectionRules" not in applied.body["spec"]
    assert applied.body["spec"]["capabilities"]["engines"] == ["vllm", "sglang"]
    assert applied.query["force"] == "true"
    received = [item["reason"] for item in reported.body["status"]["conditions"]]
    assert received == ["CRDNotInstalled", "ManagedByOthers"]


async def test_rules_are_applied_when_another_field_conflicts() -> None:
    server = Server()
    server.refuse = lambda asked: (
        conflict("selectionRules-editor", ".spec.documentation") if asked.query["force"] == "false" else None
    )

    async with registered(server):
        written = await server.until(lambda _: server.heartbeats() >= 1)

    applied, reported = written[:2]
    assert "selectionRules" in applied.body["spec"]
    assert applied.query["force"] == "true"
    assert [item["reason"] for item in reported.body["status"]["conditions"]] == ["CRDNotInstalled"]


@pytest.mark.parametrize(
    ("schema", "status", "reason", "message"),
    [
        pytest.param(
            Schema("example.com/v1"),
            "True",
            "SchemaSupported",
            "CRD engines.example.com is installed, using example.com/v1",
            id="all of it",
        ),
        pytest.param(
            Schema("example.com/v1", lost=("presets", "0 replicas")),
            "True",
            "SchemaDegraded",
            "CRD engines.example.com is installed, using example.com/v1; without: presets, 0 replicas; "
            "a newer Example supports them",
            id="an older one",
        ),
        pytest.param(
            UnsupportedSchema(("spec.a", "spec.b")),
            "False",
            "UnsupportedSchema",
            "CRD engines.example.com lacks spec.a, spec.b; install a Example version that this provider supports",
            id="unknown",
        ),
        pytest.param(
            None,
            "False",
            "CRDNotInstalled",
            "CRD engines.example.com is not installed; install the Example operator",
            id="none",
        ),
    ],
)
def test_condition_reports_the_upstream_crd(
    schema: Schema | UnsupportedSchema | None, status: str, reason: str, message: str
) -> None:
    condition = upstream_condition(provider(), schema)

    assert (condition["status"], condition["reason"], condition["message"]) == (status, reason, message)


def test_kind_of_kubernetes_needs_nothing_installed() -> None:
    of_kubernetes = replace(provider(), upstream=UpstreamKind("apps", "deployments", "Deployment", "v1"))

    condition = upstream_condition(of_kubernetes, Schema("apps/v1"))

    assert (condition["status"], condition["message"]) == (
        "True",
        "Kind Deployment of apps/v1 is part of Kubernetes",
    )
