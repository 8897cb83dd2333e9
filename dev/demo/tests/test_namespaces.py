"""The connection from this machine to an API server in its own namespaces."""

from __future__ import annotations

import re
import socket
import socketserver
import threading
from pathlib import Path

from kubefoundry_demo import namespaces
from kubefoundry_local.control_plane import ControlPlane


class Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"heard " + self.rfile.readline())


def test_socket_is_forwarded_to_the_api_server(tmp_path: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"https://127.0.0.1:{server.server_address[1]}"
        original = tmp_path / "theirs"
        original.write_text(f"server: {address}\n")
        plane = ControlPlane(original, address, None, None, None)

        with namespaces.reachable(plane, listening.detach(), tmp_path) as kubeconfig:
            [port] = re.findall(r"^server: https://127\.0\.0\.1:(\d+)$", kubeconfig.read_text(), flags=re.M)
            with socket.create_connection(("127.0.0.1", int(port))) as client:
                client.sendall(b"hello\n")
                response = client.makefile("rb").read()
        server.shutdown()

    assert int(port) != server.server_address[1]
    assert response == b"heard hello\n"
    assert kubeconfig.stat().st_mode & 0o077 == 0
