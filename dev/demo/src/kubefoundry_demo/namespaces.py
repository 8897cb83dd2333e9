"""Run the demo in its own network and mount namespaces, so that pods can run, and keep it reachable from outside.

A socket that is opened beforehand listens on this machine, and is forwarded to the API server.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import urlsplit

from kubefoundry_local.control_plane import ROOT, ControlPlane
from kubefoundry_nodes.kubelet.services import forward

INSIDE: Final = ROOT / "dev" / "nodes" / "inside"
"""Program that runs a command in such namespaces. Without a command it checks whether it could."""


def missing() -> str:
    """Return in one line why no pods can run here, empty if they can."""
    result = subprocess.run([str(INSIDE)], capture_output=True, text=True, check=False)
    return result.stderr.strip() if result.returncode else ""


def enter(module: str, *arguments: str) -> NoReturn:
    """Replace this process by a module with these arguments in its own namespaces.

    The last argument is the descriptor of a socket that listens on this machine's loopback address.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    listening.set_inheritable(True)
    sys.stdout.flush()
    descriptor = str(listening.detach())
    os.execv(INSIDE, [str(INSIDE), sys.executable, "-m", module, *arguments, descriptor])


@contextmanager
def reachable(plane: ControlPlane, descriptor: int, folder: Path) -> Iterator[Path]:
    """Yield a kubeconfig that works on this machine until the block ends, by the socket of `enter`."""
    listening = socket.socket(fileno=descriptor)
    outside = f"https://127.0.0.1:{listening.getsockname()[1]}"
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(plane.kubeconfig.read_text().replace(plane.server, outside))
    kubeconfig.chmod(0o600)
    address = urlsplit(plane.server)
    place = (address.hostname or "", address.port or 443)
    stopped = threading.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await forward(reader, writer, [place])

    async def serve() -> None:
        server = await asyncio.start_server(accept, sock=listening)
        await asyncio.to_thread(stopped.wait)
        server.close()

    thread = threading.Thread(target=asyncio.run, args=[serve()], name="api-server", daemon=True)
    thread.start()
    try:
        yield kubeconfig
    finally:
        stopped.set()
        thread.join()
