"""Sign-in, the checks of every request, and the headers of every response. No API server is needed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, CookieJar
from aiohttp.test_utils import TestServer

from kubefoundry_dashboard.access import LIFETIME, MOST, Access, InCluster, Local, namespace_of
from kubefoundry_dashboard.application import make
from kubefoundry_dashboard.rendering import block, environment
from kubefoundry_sdk._cluster.credentials import Credentials

NOBODY = Credentials("http://127.0.0.1:9", None, lambda: None)
"""An API server that does not answer."""


@asynccontextmanager
async def page(access: Access, **how: Any) -> AsyncIterator[tuple[ClientSession, str]]:
    """Serve the page, and yield a client that keeps cookies and the page's address."""
    async with (
        TestServer(make(access, **how)) as server,
        ClientSession(cookie_jar=CookieJar(unsafe=True)) as client,
    ):
        yield client, f"http://127.0.0.1:{server.port}"


def local() -> Local:
    return Local(NOBODY, "default", 1)


async def csrf(client: ClientSession, base: str) -> str:
    async with client.get(f"{base}/") as answer:
        match = re.search(r'name="csrf" content="([^"]+)"', await answer.text())
    assert match
    return match[1]


async def test_link_signs_one_browser_in_once() -> None:
    access = local()
    link = f"/?code={access.code}"
    async with page(access) as (client, base):
        async with client.get(f"{base}/") as answer:
            assert (answer.status, "kubefoundry start" in await answer.text()) == (401, True)
        async with client.get(f"{base}{link}") as answer:
            cookie = answer.headers["Set-Cookie"]
            assert (answer.status, "HttpOnly" in cookie, "SameSite=Strict" in cookie) == (200, True, True)
        async with client.get(f"{base}/") as answer:
            # let in: what fails now is the API server
            assert (answer.status, "does not answer" in await answer.text()) == (503, True)
        async with ClientSession() as other, other.get(f"{base}{link}") as answer:
            assert (answer.status, "has been used" in await answer.text()) == (401, True)


@pytest.mark.parametrize("code", ["", "x", "\u00e9", "x" * 5000])
async def test_wrong_code_is_refused(code: str) -> None:
    async with page(local()) as (client, base), client.get(f"{base}/", params={"code": code}) as answer:
        assert (answer.status, "Set-Cookie" in answer.headers) == (401, False)


@pytest.mark.parametrize(
    ("host", "names", "status"),
    [
        ("127.0.0.1:3000", (), 401),
        ("localhost", (), 401),
        ("[::1]:3000", (), 401),
        ("page.example", ("page.example",), 401),
        ("page.example:8443", ("page.example",), 401),
        ("evil.example", (), 421),
        ("127.0.0.1.evil.example", (), 421),
        ("evil.example", ("page.example",), 421),
        ("localhost@evil.example", (), 421),
        ("[", (), 421),
        ("", (), 421),
    ],
)
async def test_unknown_host_name_is_refused(host: str, names: tuple[str, ...], status: int) -> None:
    async with (
        page(local(), names=names) as (client, base),
        client.get(f"{base}/", headers={"Host": host}) as answer,
    ):
        assert answer.status == status


@pytest.mark.parametrize(
    ("origin", "given", "status"),
    [
        pytest.param("own", "own", 200, id="a form of ours"),
        pytest.param("own", "", 403, id="no token"),
        pytest.param("own", "x", 403, id="another token"),
        pytest.param("http://evil.example", "own", 403, id="another site"),
        pytest.param("null", "own", 403, id="a sandboxed frame"),
        pytest.param(None, "own", 403, id="nobody says where from"),
    ],
)
async def test_write_needs_own_origin_and_csrf_token(origin: str | None, given: str, status: int) -> None:
    access = local()
    async with page(access) as (client, base):
        await (await client.get(f"{base}/?code={access.code}")).release()
        token = await csrf(client, base) if given == "own" else given
        headers = {} if origin is None else {"Origin": base if origin == "own" else origin}
        async with client.post(f"{base}/sign-out", data={"csrf": token}, headers=headers) as answer:
            assert answer.status == status
        async with client.get(f"{base}/") as answer:
            assert (answer.status == 401) == (status == 200)


@pytest.mark.parametrize(
    "path", ["/", "/static/page.css", "/none", "/models/a/b", "/live/models", "/healthz"]
)
async def test_every_response_has_security_headers(path: str) -> None:
    async with page(local()) as (client, base), client.get(f"{base}{path}") as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Server" not in answer.headers


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Bearer good", 503),
        ("bearer good", 503),
        ("Bearer ", 401),
        ("Basic good", 401),
        ("Bearer two words", 401),
        (f"Bearer {'x' * 20000}", 400),
    ],
)
async def test_request_in_a_cluster_needs_a_token(header: str, status: int) -> None:
    async with (
        page(InCluster(NOBODY)) as (client, base),
        client.get(f"{base}/", headers={"Authorization": header}) as answer,
    ):
        assert answer.status == status


async def test_rejected_token_evicts_no_accepted_token() -> None:
    access = InCluster(NOBODY)
    first = access.enter("t")
    async with page(access) as (client, base):
        for number in range(3):
            form = {"token": f"t{number}"}
            async with client.post(f"{base}/sign-in", data=form, headers={"Origin": base}) as answer:
                assert answer.status == 401
    assert first
    assert access.of_session(first)
    assert len(access._sessions) == 1


async def test_unverified_token_starts_no_session() -> None:
    async with (
        page(InCluster(NOBODY)) as (client, base),
        client.post(f"{base}/sign-in", data={"token": "t"}, headers={"Origin": base}) as answer,
    ):
        assert (answer.status, "Set-Cookie" in answer.headers) == (401, False)
        assert "does not answer" in await answer.text()


def test_pasted_token_expires_or_gives_way_to_a_new_one() -> None:
    now = [0.0]
    access = InCluster(NOBODY, clock=lambda: now[0])
    first = access.enter("t")
    assert first and access.of_session(first)
    now[0] = LIFETIME + 1
    assert access.of_session(first) is None
    second = access.enter("t")
    assert second
    for _ in range(MOST):
        last = access.enter("t")
    assert last
    assert (access.of_session(second), bool(access.of_session(last))) == (None, True)


def tokens() -> Iterator[tuple[str, str]]:
    yield "opaque", "default"
    yield "a.b.c", "default"
    yield "a." + "W1s" * 5000 + ".c", "default"
    # {"sub": "system:serviceaccount:team-a:me"}
    yield "h.eyJzdWIiOiAic3lzdGVtOnNlcnZpY2VhY2NvdW50OnRlYW0tYTptZSJ9.s", "team-a"
    # {"sub": "somebody"}
    yield "h.eyJzdWIiOiAic29tZWJvZHkifQ.s", "default"
    # [1]
    yield "h.WzFd.s", "default"


@pytest.mark.parametrize(("token", "namespace"), list(tokens()))
def test_namespace_is_read_from_a_token(token: str, namespace: str) -> None:
    assert namespace_of(token) == namespace


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ('"><img src=x onerror=1>', "&#34;&gt;&lt;img src=x onerror=1&gt;"),
        ("\u202eabc\x1b[2J", " abc [2J"),
        ("{{ 7 * 7 }}", "{{ 7 * 7 }}"),
        ("x" * 5000, "x" * 2000 + " … " + "x" * 2000),
        (None, ""),
    ],
)
def test_tenant_input_is_escaped(value: Any, shown: str) -> None:
    assert environment().from_string("{{ value }}").render(value=value) == shown


def test_block_keeps_lines_and_escapes_text() -> None:
    assert block("a\n\tb<i>\u202e") == "a\n    b&lt;i&gt; "
