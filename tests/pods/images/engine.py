"""An engine as ModelDeployments have them, simulated: OpenAI's API on PORT, every answer signed with NAME."""

from __future__ import annotations

import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        model = {"id": os.environ["MODEL"], "object": "model", "created": 0, "owned_by": "test"}
        self.answer({"object": "list", "data": [model]} if self.path == "/v1/models" else {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = f"{os.environ['NAME']} heard {asked['messages'][-1]['content']}"
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
        about = {"id": "1", "object": "chat.completion", "created": int(time.time()), "model": asked["model"]}
        known = asked["model"] == os.environ["MODEL"] and self.path == "/v1/chat/completions"
        self.answer({**about, "choices": [choice]} if known else {})

    def answer(self, value: dict[str, Any]) -> None:
        body = json.dumps(value or {"error": {"message": f"not known: {self.path}"}}).encode()
        self.send_response(200 if value else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("", int(os.environ["PORT"])), Handler).serve_forever()
