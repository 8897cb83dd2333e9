"""A model hub with one file: the part of Hugging Face's API that llama.cpp uses (common/hf-cache.cpp)."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

COMMIT: Final = "1" * 40


@dataclass(slots=True)
class Hub:
    """A hub. `url` is the value of HF_ENDPOINT.

    `requests` counts all requests, `downloads` those that downloaded the file.
    """

    repository: str
    file: str
    content: bytes
    url: str = ""
    requests: int = 0
    downloads: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str) -> bytes | None:
        """Return the response to a path, None if there is none."""
        api = f"/api/models/{self.repository}"
        if path == f"{api}/refs":
            return json.dumps({"branches": [{"name": "main", "targetCommit": COMMIT}]}).encode()
        if path == f"{api}/tree/{COMMIT}":
            digest = hashlib.sha256(self.content).hexdigest()
            size = len(self.content)
            entry = {"type": "file", "path": self.file, "size": size, "lfs": {"oid": digest, "size": size}}
            return json.dumps([entry]).encode()
        return self.content if path == f"/{self.repository}/resolve/{COMMIT}/{self.file}" else None

    def count_request(self) -> None:
        with self._lock:
            self.requests += 1

    def count_download(self) -> None:
        with self._lock:
            self.downloads += 1


@contextmanager
def serving(
    address: str, port: int, repository: str, file: Path, tls: ssl.SSLContext | None = None
) -> Iterator[Hub]:
    """Serve a file of a repository `OWNER/NAME` until the block ends. Port 0 stands for a free port."""
    hub = Hub(repository, file.name, file.read_bytes())

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.send(body=False)

        def do_GET(self) -> None:
            self.send(body=True)

        def send(self, *, body: bool) -> None:
            hub.count_request()
            content = hub.answer(self.path.partition("?")[0])
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if body and content is not None:
                self.wfile.write(content)
                if content is hub.content:
                    hub.count_download()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: other programs use the terminal."""

    server = ThreadingHTTPServer((address, port), Handler)
    if tls:
        # The handshake waits for the thread of the request, so a client that refuses it stops no other.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    hub.url = f"{'https' if tls else 'http'}://{address}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, name="hub", daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
