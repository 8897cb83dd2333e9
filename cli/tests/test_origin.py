"""A manifest from an https URL: redirects, on real servers of the loopback address."""

from __future__ import annotations

import hashlib
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    """Serve MANIFEST, but at each of `places` a redirect. Yield the URL, and record the requested paths."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            place = places.get(self.path)
            self.send_response(302 if place else 200)
            if place:
                self.send_header("Location", place)
            self.send_header("Content-Length", "0" if place else str(len(MANIFEST)))
            self.end_headers()
            self.wfile.write(b"" if place else MANIFEST)

        def log_message(self, format: str, *arguments: Any) -> None: ...

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context:
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{listening.server_address[1]}"
    finally:
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
