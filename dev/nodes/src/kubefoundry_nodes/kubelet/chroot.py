"""Run a command in the root of an image without a cluster, to build layers and to inspect them."""

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
    """Run a command as the image's user, without a network, and capture its output.

    Files that the command writes are lost, except those below `binds`.

    Args:
        image: The image.
        argv: The command.
        binds: Folders or files of this machine, by their path in the root.
        env: Further environment variables.
    """
    mounts = [Mount(str(Path(source).resolve()), target) for target, source in (binds or {}).items()]
    with tempfile.TemporaryDirectory() as scratch:
        container = Sandbox(
            scratch=scratch,
            lower=image.folders,
            argv=argv,
            env={**image.env, **(env or {})},
            cwd=image.workdir,
            uid=image.user,
            mounts=mounts,
        )
        result = subprocess.run(
            sandbox.command(),
            input=container.written(),
            capture_output=True,
            env=sandbox.environment(),
            check=False,
        )
    output, errors = (text.decode(errors="replace") for text in (result.stdout, result.stderr))
    return subprocess.CompletedProcess(list(argv), result.returncode, output, errors)
