"""Tests how preflight waits for the service of a provider."""

from __future__ import annotations

import http.server
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from support.provider_server import SOCKET, Server, asks

pytestmark = pytest.mark.integration


@contextmanager
def health(status: int) -> Iterator[int]:
    """Serve a health listener, and yield its port."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.end_headers()

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as listener:
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        yield listener.server_port
        listener.shutdown()
        thread.join()


def test_preflight_passes_when_health_listener_answers(server: Server) -> None:
    with health(200) as port:
        asks(server, health={"port": port, "path": "/healthz"})

        ended = server.preflight(HTTP_PROXY="http://127.0.0.1:9", http_proxy="http://127.0.0.1:9")

    assert ended.code == 0, ended.log
    assert "Waiting for the service of provider 'echo'" in ended.log


def test_preflight_passes_when_traffic_address_accepts(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asks(server, address=f"http://127.0.0.1:{listener.getsockname()[1]}")

        ended = server.preflight()

    assert ended.code == 0, ended.log


def test_preflight_passes_when_socket_accepts(server: Server) -> None:
    # A socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/service.sock")
        listener.listen()
        place = server.places.at("/run/lls-provider")
        place.parent.mkdir(parents=True)
        place.symlink_to(folder)
        short = Path(folder) / "root"
        short.symlink_to(server.root)
        server.root = short
        asks(server, **SOCKET, address="http+unix:///run/lls-provider/service.sock")

        ended = server.preflight()

    assert ended.code == 0, ended.log


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"health": {"port": 9, "path": "/healthz"}},
            "at http://127.0.0.1:9/healthz within 1 s: [Errno 111]",
        ),
        ({"address": "http://127.0.0.1:9"}, "at http://127.0.0.1:9 within 1 s: [Errno 111]"),
        ({**SOCKET, "address": "http+unix:///no.sock"}, "at http+unix:///no.sock within 1 s: [Errno 2]"),
    ],
)
def test_preflight_names_service_that_is_not_reached(
    server: Server, fields: Mapping[str, Any], reason: str
) -> None:
    asks(server, **fields)

    ended = server.preflight()

    assert ended.code == 1, ended.log
    assert "Code: ServiceNotReached" in ended.message
    assert "Provider: echo" in ended.message
    assert f"container provider-echo did not answer {reason}" in ended.message
    assert not server.places.effective.exists()


def test_preflight_names_service_in_pods_of_its_own(server: Server) -> None:
    asks(server, mode="Deployment", address="http://127.0.0.1:9")

    ended = server.preflight()

    assert "Code: ServiceNotReached" in ended.message
    assert "container provider-echo of the service's own pods did not answer" in ended.message


def test_preflight_names_answer_of_unhealthy_service(server: Server) -> None:
    with health(503) as port:
        asks(server, health={"port": port, "path": "/healthz"})

        ended = server.preflight()

    assert "Code: ServiceNotReached" in ended.message
    assert "it answered 503" in ended.message


@pytest.mark.parametrize(
    "answer",
    [
        "key SECRET\r\n\r\n",
        "HTTP/SECRET 200 OK\r\n\r\n",
        "HTTP/1.1 SECRET\r\n\r\n",
        "HTTP/1.1 200 OK\r\n" + "SECRET: x\r\n" * 200 + "\r\n",
        "SECRET" * 20_000,
        "",
    ],
    ids=["no HTTP", "version", "status", "headers", "long line", "nothing"],
)
def test_preflight_quotes_no_answer_of_service(server: Server, answer: str) -> None:
    with answering(answer.encode()) as port:
        asks(server, health={"port": port, "path": "/healthz"})

        ended = server.preflight()

    assert ended.code == 1, ended.log
    assert "Code: ServiceNotReached" in ended.message
    assert "SECRET" not in ended.message + ended.log


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """Send the same bytes to each request, and yield the port."""

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.request.recv(2**16)
            with suppress(ConnectionError):
                self.wfile.write(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Answer) as listener:
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        yield listener.server_address[1]
        listener.shutdown()
        thread.join()


@pytest.mark.parametrize("address", ["http://127.0.0.1:99999", "http://[", "http://127.0.0.1:a"])
def test_preflight_names_service_with_unusable_address(server: Server, address: str) -> None:
    asks(server, address=address)

    ended = server.preflight()

    assert ended.code == 1, ended.log
    assert "Code: ServiceNotReached" in ended.message


def test_preflight_does_not_wait_for_optional_service(server: Server) -> None:
    asks(server, required=False)

    ended = server.preflight()

    assert ended.code == 0, ended.log
    assert "Waiting" not in ended.log
