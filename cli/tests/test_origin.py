"""A manifest from an https URL: redirects, on real servers of the loopback address."""

from __future__ import annotations

import hashlib
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_cli.failure import Failure
from kubefoundry_cli.install import origin
from support.proxy import certificate

MANIFEST = b"kind: X"
DIGEST = hashlib.sha256(MANIFEST).hexdigest()


@contextmanager
def server(places: Mapping[str, str], asked: list[str], context: ssl.SSLContext | None) -> Iterator[str]:
    """Serve MANIFEST, but at each of `places` a redirect. Yield the URL, and record the requested paths.

    `/code/502` is that answer. `/endless` sends bytes without an end, `/trickle` a byte now and then, and `/header`
    the same before the end of the header.
    """
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if self.path in ("/endless", "/trickle", "/header"):
                with suppress(OSError):
                    self.send_forever(*(b"#" * 65536, 0.0) if self.path == "/endless" else (b"x", 0.05))
                return
            if self.path.startswith("/code/"):
                self.send_error(int(self.path.removeprefix("/code/")), "No\tGateway")
                return
            place = places.get(self.path)
            self.send_response(302 if place else 200)
            if place:
                self.send_header("Location", place)
            self.send_header("Content-Length", "0" if place else str(len(MANIFEST)))
            self.end_headers()
            self.wfile.write(b"" if place else MANIFEST)

        def send_forever(self, piece: bytes, pause: float) -> None:
            self.send_response(200)
            if self.path == "/header":
                self.flush_headers()
                piece = b"X-Long: " + piece
            else:
                self.end_headers()
            while not ended.wait(pause):
                self.wfile.write(piece)

        def log_message(self, format: str, *arguments: Any) -> None: ...

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context:
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{listening.server_address[1]}"
    finally:
        ended.set()
        listening.shutdown()
        thread.join()
        listening.server_close()


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Return the context of https servers that this process trusts."""
    files = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(files[0]))
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(*files)
    return served


async def test_manifest_without_redirect_is_read_quietly(
    context: ssl.SSLContext, capsys: pytest.CaptureFixture[str]
) -> None:
    with server({}, [], context) as url:
        assert await origin.read(f"{url}/m.yaml", DIGEST) == MANIFEST.decode()

    assert capsys.readouterr().err == ""


async def test_redirect_to_another_https_server_is_named(
    context: ssl.SSLContext, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        server({}, [], context) as second,
        server({"/m.yaml": f"{second}/stored?signature=secret"}, [], context) as first,
    ):
        assert await origin.read(f"{first}/m.yaml", DIGEST) == MANIFEST.decode()

    said = capsys.readouterr().err
    assert f"{first}/m.yaml was redirected to {second}/stored?…" in said
    assert "secret" not in said


@pytest.mark.parametrize("hops", [0, 1])
async def test_redirect_to_http_is_refused_before_it_is_asked(context: ssl.SSLContext, hops: int) -> None:
    asked: list[str] = []
    with server({}, asked, None) as plain:
        places = {"/m.yaml": "/0", "/0": f"{plain}/m.yaml"} if hops else {"/m.yaml": f"{plain}/m.yaml"}
        with (
            server(places, [], context) as first,
            pytest.raises(Failure, match=f"redirected to {plain}/m.yaml, which is no https URL"),
        ):
            await origin.read(f"{first}/m.yaml", DIGEST)

    assert asked == []


@pytest.mark.parametrize("place", ["ftp://127.0.0.1/m", "file:///etc/hostname", "//127.0.0.1:1/m"])
async def test_redirect_to_another_place_is_a_failure(context: ssl.SSLContext, place: str) -> None:
    with (
        server({"/m.yaml": place}, [], context) as first,
        pytest.raises(Failure, match=r"cannot read https://127\.0\.0\.1"),
    ):
        await origin.read(f"{first}/m.yaml", DIGEST)


@pytest.mark.parametrize("path", ["trickle", "header", "redirected"])
async def test_manifest_that_trickles_is_given_up(
    context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(origin, "SECONDS", 0.5)
    begun = time.monotonic()

    with (
        server({"/redirected": "/trickle"}, [], context) as url,
        pytest.raises(Failure, match=rf"^cannot read {url}/{path}: it did not arrive within"),
    ):
        await origin.read(f"{url}/{path}", DIGEST)

    assert time.monotonic() - begun < 10


async def test_manifest_without_an_end_is_given_up(context: ssl.SSLContext) -> None:
    with (
        server({"/m.yaml": "/endless"}, [], context) as url,
        pytest.raises(Failure, match=rf"^{url}/m\.yaml has more than 4 MiB: that is no manifest$"),
    ):
        await origin.read(f"{url}/m.yaml", DIGEST)


async def test_loop_of_redirects_takes_one_line(context: ssl.SSLContext) -> None:
    asked: list[str] = []
    places = {"/m.yaml": "/a?key=secret", "/a?key=secret": "/m.yaml"}
    with server(places, asked, context) as url, pytest.raises(Failure) as failed:
        await origin.read(f"{url}/m.yaml", DIGEST)

    assert failed.value.message == (
        f"cannot read {url}/m.yaml: it is redirected to {url}/m.yaml: more than 10 redirects are not followed"
    )
    assert len(asked) == 11


@pytest.mark.parametrize("code", [403, 404, 407, 500, 502])
@pytest.mark.parametrize("hops", [0, 1])
async def test_refusal_names_the_code_and_the_url(context: ssl.SSLContext, code: int, hops: int) -> None:
    with server({"/m.yaml": f"/code/{code}"}, [], context) as url:
        path, at = ("m.yaml", f"it is redirected to {url}/code/{code}: ") if hops else (f"code/{code}", "")
        with pytest.raises(Failure) as failed:
            await origin.read(f"{url}/{path}", DIGEST)

    assert failed.value.message == f"cannot read {url}/{path}: {at}the answer is {code} No Gateway"


async def test_redirect_to_failing_server_is_named_without_password(context: ssl.SSLContext) -> None:
    with (
        server({"/m.yaml": "https://me:secret@127.0.0.1:1/m?key=secret"}, [], context) as url,
        pytest.raises(Failure) as failed,
    ):
        await origin.read(f"{url}/m.yaml", DIGEST)

    assert (
        "it is redirected to https://127.0.0.1:1/m?…: Cannot connect to host 127.0.0.1:1"
        in failed.value.message
    )
    assert "secret" not in failed.value.message
    assert "\n" not in failed.value.message


async def test_address_of_a_redirect_is_requested_as_it_is(context: ssl.SSLContext) -> None:
    """A signature is valid for the very characters of its URL."""
    asked: list[str] = []
    signed = "/stored%2Fa%7Eb?sig=a%2Bb%3D&x=%C3%BC"
    with server({"/m.yaml": signed}, asked, context) as url:
        assert await origin.read(f"{url}/m.yaml", DIGEST) == MANIFEST.decode()

    assert asked == ["/m.yaml", signed]


async def test_manifest_is_read_through_the_proxy_of_the_environment(
    context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server({}, [], None) as proxy:
        monkeypatch.setenv("https_proxy", proxy)
        with pytest.raises(Failure, match=r"m\.yaml: the proxy does not connect to it: 501 "):
            await origin.read("https://example.invalid/m.yaml", DIGEST)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with server({}, [], context) as url:
            assert await origin.read(f"{url}/m.yaml", DIGEST) == MANIFEST.decode()


async def test_file_without_an_end_is_no_manifest() -> None:
    with pytest.raises(Failure, match=r"^/dev/zero has more than 4 MiB: that is no manifest$"):
        await origin.read("/dev/zero", None)
