"""Runs the demo in its own network and mount namespaces, so that pods can run, while this machine can still reach it.

One socket leads in: it is opened beforehand, so it listens on this machine, and is forwarded to the API server.
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

INSIDE: Final = ROOT / "nodes" / "inside"
"""Runs a command in such namespaces; without a command it checks whether it could."""


def missing() -> str:
    """Why no pods can run here, in one line; empty if they can."""
    done = subprocess.run([str(INSIDE)], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def enter(module: str, *arguments: str) -> NoReturn:
    """Continues as this module with these arguments in its own namespaces, as the same process.

    The last argument is the descriptor of a socket that listens on this machine's loopback address.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    listening.set_inheritable(True)
    sys.stdout.flush()
    descriptor = str(listening.detach())
    os.execv(INSIDE, [str(INSIDE), sys.executable, "-m", module, *arguments, descriptor])


@contextmanager
def reachable(plane: ControlPlane, descriptor: int, folder: Path) -> Iterator[Path]:
    """A kubeconfig that works on this machine until the block ends. descriptor: of that socket."""
    listening = socket.socket(fileno=descriptor)
    outside = f"https://127.0.0.1:{listening.getsockname()[1]}"
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(plane.kubeconfig.read_text().replace(plane.server, outside))
    kubeconfig.chmod(0o600)
    address = urlsplit(plane.server)
    place = (address.hostname or "", address.port or 443)
    stopped = threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(
            lambda reader, writer: forward(reader, writer, [place]), sock=listening
        )
        await asyncio.to_thread(stopped.wait)
        server.close()

    thread = threading.Thread(target=asyncio.run, args=[serve()], name="api-server", daemon=True)
    thread.start()
    try:
        yield kubeconfig
    finally:
        stopped.set()
        thread.join()
