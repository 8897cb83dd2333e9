"""One command in the root of an image, without any cluster: how layers are made, and looked at."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pods import sandbox
from pods.image import Image
from pods.sandbox import Mount, Sandbox

CONNECTION: Final = (
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
)
"""Variables that say how this machine gets to the network."""


def run(
    image: Image,
    argv: Sequence[str],
    binds: Mapping[str, str | Path] | None = None,
    env: Mapping[str, str] | None = None,
    network: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Runs the command as the image's user and takes its output. What it writes is gone afterwards, `binds` apart.

    binds: target in the root and folder or file of this machine. network: with the network of the caller, and pip as
    this machine configures it; else without any interface.
    """
    variables = {**image.env, **(env or {})}
    mounts = [Mount(str(Path(source).resolve()), target) for target, source in (binds or {}).items()]
    if network:
        connection = connection_environment()
        variables = {**connection, **variables}
        mounts += [Mount("/etc/resolv.conf", "/etc/resolv.conf", read_only=True), *named_in(connection)]
    with tempfile.TemporaryDirectory() as scratch:
        wanted = Sandbox(
            scratch=scratch,
            lower=image.folders,
            argv=argv,
            env=variables,
            cwd=image.workdir,
            uid=image.user,
            mounts=mounts,
            network=sandbox.KEEP if network else sandbox.NONE,
        )
        done = subprocess.run(
            sandbox.command(),
            input=wanted.written(),
            capture_output=True,
            env=sandbox.environment(),
            check=False,
        )
    output, errors = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(list(argv), done.returncode, output, errors)


@functools.cache
def connection_environment() -> dict[str, str]:
    """Variables by which pip in a root gets to the same packages as on this machine, whatever file says so here."""
    found = {name: os.environ[name] for name in CONNECTION if name in os.environ}
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    # Environment last: it goes before files.
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        key, _, value = line.partition("=")
        _, _, name = key.rpartition(".")
        # Several values stand on lines of their own in a file.
        found[f"PIP_{name.upper().replace('-', '_')}"] = " ".join(str(ast.literal_eval(value)).split())
    return found


def named_in(variables: Mapping[str, str]) -> list[Mount]:
    """Files and folders of this machine that the variables name, to stand in the same places."""
    words = {word.removeprefix("file://") for value in variables.values() for word in value.split()}
    paths = sorted(Path(word) for word in words if word.startswith("/") and Path(word).exists())
    return [Mount(str(path.resolve()), str(path), read_only=True) for path in paths]
