"""Runs one command in the root of an image, without any cluster: to build layers, and to look at them."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from kubefoundry_nodes.kubelet import sandbox
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.sandbox import Mount, Sandbox


def run(
    image: Image,
    argv: Sequence[str],
    binds: Mapping[str, str | Path] | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs the command as the image's user, without any network, and takes its output. What it writes is gone
    afterwards, `binds` apart: target in the root, and folder or file of this machine."""
    mounts = [Mount(str(Path(source).resolve()), target) for target, source in (binds or {}).items()]
    with tempfile.TemporaryDirectory() as scratch:
        wanted = Sandbox(
            scratch=scratch,
            lower=image.folders,
            argv=argv,
            env={**image.env, **(env or {})},
            cwd=image.workdir,
            uid=image.user,
            mounts=mounts,
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
