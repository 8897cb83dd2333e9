"""Programs that are not ours, for images: crane, umoci and cosign, and a registry on loopback, which is crane's."""

from __future__ import annotations

import functools
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.debian import Failure
from kubefoundry_local.child_processes import launch
from kubefoundry_local.control_plane import BUILD
from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import PROBE, end

START: Final = 30.0
"""Seconds until the registry listens, at most."""


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry on loopback."""

    address: str

    def push(self, layout: Path, name: str) -> str:
        """Push an image layout under a name with tag, and return the reference with its digest."""
        return run("crane", "push", str(layout), f"{self.address}/{name}").strip()

    def unpack(self, name: str, architecture: str, work: Path) -> Path:
        """Pull the image of an architecture and unpack it below `work`. The result has `rootfs` and `config.json`."""
        reference, pulled, bundle = f"{self.address}/{name}", work / "pulled", work / "bundle"
        run(
            "crane",
            "pull",
            "--format=oci",
            "--annotate-ref",
            f"--platform=linux/{architecture}",
            reference,
            str(pulled),
        )
        mode = ["--rootless"] if os.geteuid() else []
        run("umoci", "unpack", *mode, "--image", f"{pulled}:{reference}", str(bundle))
        return bundle


@contextmanager
def registry(folder: Path) -> Iterator[Registry]:
    """Yield a registry that stores images in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    address = f"127.0.0.1:{free_port()}"
    command = [program("crane"), "registry", "serve", f"--address={address}", f"--disk={folder}"]
    process = launch(command, {}, folder / "log")
    try:
        _until_listening(address)
        yield Registry(address)
    finally:
        end(process)


def _until_listening(address: str) -> None:
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + START
    while True:
        try:
            socket.create_connection((host, int(port))).close()
        except OSError:
            if time.monotonic() > deadline:
                raise Failure(f"no registry at {address} after {START} s") from None
            time.sleep(PROBE)
        else:
            return


def run(name: str, *arguments: str) -> str:
    """Run a program, and return its output. Raises Failure with its errors."""
    done = subprocess.run([program(name), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{name} {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout


@functools.cache
def program(name: str) -> str:
    """Build a program if its sources changed, and return its path."""
    return subprocess.run([str(BUILD), name], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
