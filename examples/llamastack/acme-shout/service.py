"""The service, which runs in a container of its own. It answers with the text of the request in capitals.

It has two listeners, at the addresses of these variables:

LLS_PROVIDER_LISTEN: for requests, `unix:PATH` or `HOST:PORT`. They carry the token that is in
the file LLS_PROVIDER_TOKEN_FILE.
LLS_PROVIDER_HEALTH: for health checks, `HOST:PORT`. They carry no token.
"""

from __future__ import annotations

import hmac
import http.server
import json
import os
import signal
import socket
import socketserver
import sys
import threading
from pathlib import Path
from typing import Any

SOCKET_MODE = 0o660
"""The server's container connects to the socket by the pod's group."""


class Requests(http.server.BaseHTTPRequestHandler):
    token = ""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        sent = self.headers.get("Authorization", "")
        if self.token and not hmac.compare_digest(sent.encode(), f"Bearer {self.token}".encode()):
            self.answer(401, {"error": "the token is missing or wrong"})
            return
        self.answer(200, {"text": str(json.loads(body)["text"]).upper()})

    def answer(self, status: int, value: dict[str, Any]) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing about requests: they belong to users."""


class Health(Requests):
    def do_GET(self) -> None:
        self.answer(200, {"provider": os.environ.get("LLS_PROVIDER_ID", ""), "version": "0.1.0"})

    def do_POST(self) -> None:
        self.answer(405, {"error": "requests have another address"})


class SocketServer(http.server.ThreadingHTTPServer):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        # The class for HTTP expects a host and a port.
        socketserver.TCPServer.server_bind(self)


def listen(address: str) -> http.server.ThreadingHTTPServer:
    path = address.removeprefix("unix:")
    if path == address:
        host, _, port = address.rpartition(":")
        return http.server.ThreadingHTTPServer((host, int(port)), Requests)
    # A killed run leaves its socket behind.
    Path(path).unlink(missing_ok=True)
    server = SocketServer(path, Requests)  # type: ignore[arg-type]
    Path(path).chmod(SOCKET_MODE)
    return server


def main() -> None:
    # Process 1 of a container ignores signals without a handler.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if token_file := os.environ.get("LLS_PROVIDER_TOKEN_FILE"):
        Requests.token = Path(token_file).read_text().strip()
    requests = listen(os.environ["LLS_PROVIDER_LISTEN"])
    # From here on, requests are accepted.
    if address := os.environ.get("LLS_PROVIDER_HEALTH"):
        host, _, port = address.rpartition(":")
        health = http.server.ThreadingHTTPServer((host, int(port)), Health)
        threading.Thread(target=health.serve_forever, daemon=True).start()
    requests.serve_forever()


if __name__ == "__main__":
    main()
