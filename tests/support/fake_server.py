"""A fake API server that returns the test's objects without checking a schema."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml


class Answers:
    """The responses of the server. `objects` has the items of each list, by plural."""

    content_type = "application/json"

    def __init__(self) -> None:
        self.objects: Mapping[str, list[Any]] = {}

    def to(self, path: str) -> tuple[int, Any]:
        """Return HTTP status and body for a path: a list, an object by its name, or the version.

        A subclass may return the body as bytes.
        """
        path = path.partition("?")[0]
        if path == "/version":
            return 200, {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
        *_, before, last = ["", *path.strip("/").split("/")]
        if last in self.objects:
            return 200, {"metadata": {"resourceVersion": "1"}, "items": self.objects[last]}
        for obj in self.objects.get(before, ()):
            if obj["metadata"]["name"] == last:
                return 200, obj
        return 404, {"kind": "Status", "code": 404, "message": f"{before} {last} not found"}


@contextmanager
def serving(answers: Answers, folder: Path) -> Iterator[Path]:
    """Run the server during the block, and yield a kubeconfig for it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = answers.to(self.path)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", answers.content_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_CONNECT = do_PATCH = do_POST = do_PUT = do_DELETE = do_GET

        def log_message(self, format: str, *arguments: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "models"}}],
            "current-context": "x",
        }
        kubeconfig = folder / "config"
        kubeconfig.write_text(yaml.safe_dump(document))
        yield kubeconfig
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
