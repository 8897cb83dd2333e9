"""An API server that answers every question with what a test gives it, however odd: it checks no schema."""

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
    """objects: by plural, what a list of them holds; a single one is found by its name."""

    def __init__(self) -> None:
        self.objects: Mapping[str, list[Any]] = {}

    def to(self, path: str) -> tuple[int, Any]:
        path = path.partition("?")[0]
        if path == "/version":
            return 200, {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
        *_, before, last = ["", *path.strip("/").split("/")]
        if last in self.objects:
            return 200, {"metadata": {"resourceVersion": "1"}, "items": self.objects[last]}
        for one in self.objects.get(before, ()):
            if one["metadata"]["name"] == last:
                return 200, one
        return 404, {"kind": "Status", "code": 404, "message": f"{before} {last} not found"}


@contextmanager
def serving(answers: Answers, folder: Path) -> Iterator[Path]:
    """A kubeconfig that leads to it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = answers.to(self.path)
            content = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_PATCH = do_POST = do_PUT = do_DELETE = do_GET

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
