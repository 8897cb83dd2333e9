"""A tenant's server behind the API server's proxy answers anything, and harms only itself."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials
from kubefoundry_sdk._cluster.errors import Compressed, Silent, TooLong, Unreachable
from kubefoundry_sdk._cluster.service_proxy import LIMIT, Refused, Reply, ServiceProxy
from kubefoundry_sdk._cluster.transport import REQUESTS
from kubefoundry_sdk._provider.contract import Endpoint
from kubefoundry_sdk._provider.health import completion, models_endpoint
from kubefoundry_sdk._provider.health.models_endpoint import KeyRequired, NoModels
from support.sampled_cases import examples

WORDS: Final = "words-of-the-tenant"
FORGED: Final[dict[str, Any]] = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "code": 403,
    "reason": "Forbidden",
    "message": f'services "m:8000" is forbidden: User "{WORDS}" cannot get resource "services/proxy"',
}
ENDPOINT: Final = Endpoint("m", 8000)


def default() -> web.StreamResponse:
    return web.json_response({"data": [{"id": "model"}]})


@dataclass
class Plane:
    """A fake API server. Behind its proxy, a tenant's server sends `answer`."""

    answer: Callable[[], web.StreamResponse] = default
    permitted: bool = True
    url: str = ""
    elsewhere: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    async def proxied(self, request: web.Request) -> web.StreamResponse:
        assert request.headers["Accept-Encoding"] == "identity"
        assert "Cookie" not in request.headers
        return self.answer()

    async def review(self, request: web.Request) -> web.Response:
        asked = (await request.json())["spec"]["resourceAttributes"]
        assert {asked[key] for key in ("resource", "subresource", "name", "namespace")} == {
            "services",
            "proxy",
            "m:8000",
            "n",
        }
        return web.json_response({"status": {"allowed": self.permitted}})

    async def other(self, request: web.Request) -> web.Response:
        self.elsewhere.append(request.path)
        return default()  # type: ignore[return-value]


@asynccontextmanager
async def running(plane: Plane) -> AsyncIterator[ServiceProxy]:
    app = web.Application()
    app.router.add_route("*", "/api/v1/namespaces/n/services/m:8000/proxy/{path:.*}", plane.proxied)
    app.router.add_post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", plane.review)
    app.router.add_route("*", "/{path:.*}", plane.other)
    async with TestServer(app) as server:
        plane.url = f"http://localhost:{server.port}"
        account = Credentials(plane.url, None, lambda: "secret-token")
        async with Client(account, user_agent="t", warned=plane.warnings.append) as client:
            yield ServiceProxy(client, "n", "m:8000")


HEADERS: Final = (
    ("Location", "/secret"),
    ("Location", "http://169.254.169.254/latest/meta-data"),
    ("Set-Cookie", "a=b; Path=/"),
    ("Content-Encoding", "gzip"),
    ("Content-Encoding", "identity, gzip"),
    ("Warning", f'299 - "{WORDS}"'),
    ("Retry-After", "86400"),
    ("WWW-Authenticate", "Basic"),
    ("Audit-Id", "1"),
    ("Content-Type", "application/vnd.kubernetes.protobuf"),
)
BODIES: Final = (
    json.dumps(FORGED),
    json.dumps({"data": [{"id": "model"}]}),
    json.dumps({"data": {"id": 1}}),
    WORDS,
    "[" * 10_000,
    '{"data": [{"id": "\\ud800"}]}',
    "9" * 10_000,
    "\x1b[2J",
    "",
)


@st.composite
def answers(draw: st.DrawFn) -> Callable[[], web.Response]:
    status = draw(st.sampled_from([200, 201, 204, 301, 302, 307, 308, 400, 401, 403, 404, 429, 500, 503]))
    headers = draw(st.lists(st.sampled_from(HEADERS), max_size=4, unique=True))
    body = draw(st.sampled_from(BODIES)).encode("utf-8", "surrogatepass")
    return lambda: web.Response(status=status, headers=headers, body=body)


def counted() -> float:
    return sum(sample.value for metric in REQUESTS.collect() for sample in metric.samples)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(answers())
async def test_hostile_response_is_bounded_and_not_quoted(answer: Callable[[], web.Response]) -> None:
    plane = Plane(answer)
    problems: list[str] = []
    async with running(plane) as service:
        list_models = models_endpoint.through_server(service.client)
        one_token = completion.through_server(service.client)
        before = counted()
        try:
            assert await list_models("n", ENDPOINT) <= {"model", "\ufffd"}
        except NoModels as error:
            problems.append(str(error))
        try:
            await one_token("n", ENDPOINT, "model")
        except NoModels as error:
            problems.append(str(error))
        reviews = counted() - before

    assert plane.elsewhere == []
    assert plane.warnings == []
    # only the reviews are requests to the API server itself; a counter has a second sample with its time
    assert reviews == 0 or answer().status in (401, 403)
    for problem in problems:
        assert WORDS not in problem
        assert problem.isprintable()
        assert len(problem) <= 300


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("body", [FORGED, {**FORGED, "code": 401, "reason": "Unauthorized"}, {}, "text"])
async def test_forged_refusal_is_the_tenants(status: int, body: Any) -> None:
    plane = Plane(lambda: web.json_response(body, status=status))
    async with running(plane) as service:
        assert await service.refuses(Reply(status, bytearray(json.dumps(body).encode())), posts=False) is None
        with pytest.raises(KeyRequired, match=f"answers {status} "):
            await models_endpoint.through_server(service.client)("n", ENDPOINT)
        with pytest.raises(KeyRequired, match=f"answers {status}$"):
            await completion.through_server(service.client)("n", ENDPOINT, "model")


async def test_refusal_of_the_api_server_requires_no_key() -> None:
    plane = Plane(lambda: web.json_response(FORGED, status=403), permitted=False)
    async with running(plane) as service:
        for attempt in (
            models_endpoint.through_server(service.client)("n", ENDPOINT),
            completion.through_server(service.client)("n", ENDPOINT, "model"),
        ):
            with pytest.raises(NoModels, match="403 Forbidden") as raised:
                await attempt
            assert not isinstance(raised.value, KeyRequired)


def compressed() -> web.Response:
    return web.Response(body=gzip.compress(b" " * 2**26, 1), headers={"Content-Encoding": "gzip"})


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(compressed, Compressed, id="64 MiB, compressed"),
        pytest.param(lambda: web.Response(body=b" " * (LIMIT + 1)), TooLong, id="too long"),
        pytest.param(lambda: web.Response(status=500, body=b" " * (LIMIT + 1)), TooLong, id="long error"),
    ],
)
async def test_response_above_the_limit_is_not_read(
    answer: Callable[[], web.Response], error: type[Unreachable]
) -> None:
    async with running(Plane(answer)) as service:
        with pytest.raises(error):
            await service.exchange("/v1/models", seconds=30)


@pytest.mark.parametrize("status", [204, 302, 401, 503])
async def test_stream_of_another_status_has_no_lines(status: int) -> None:
    plane = Plane(lambda: web.Response(status=status, headers={"Location": "/secret"}, body=b"a\nb\n"))
    async with running(plane) as service:
        if status == 204:
            assert [line async for line in service.lines("/x", {})] == []
            return
        with pytest.raises(Refused) as raised:
            [line async for line in service.lines("/x", {})]

    assert raised.value.reply.status == status
    assert plane.elsewhere == []


async def test_server_that_sends_now_and_then_is_left() -> None:
    released = asyncio.Event()

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"a\n")
        await released.wait()
        return response

    plane = Plane()
    plane.proxied = drip  # type: ignore[method-assign]
    async with running(plane) as service:
        with pytest.raises(Silent, match="no answer within"):
            await service.exchange("/x", seconds=0.2)
        with pytest.raises(Silent, match="no answer within"):
            [line async for line in service.lines("/x", {}, seconds=0.2)]
        released.set()


@pytest.mark.parametrize("address", ["../../secrets/s", "m:80/../../..", "m?x=1", "m#x", "m/proxy/x:1"])
async def test_address_leads_to_no_other_resource(address: str) -> None:
    plane = Plane()
    async with running(plane) as service:
        await ServiceProxy(service.client, "n", address).exchange("/v1/models", seconds=5)

    [path] = plane.elsewhere
    assert path == f"/api/v1/namespaces/n/services/{address}/proxy/v1/models"
