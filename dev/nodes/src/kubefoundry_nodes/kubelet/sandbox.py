"""The parts of a container that the kernel knows. `enter.py` creates the container."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

CAPABILITIES: Final = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "FSETID": 4,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
    "SETPCAP": 8,
    "NET_BIND_SERVICE": 10,
    "NET_RAW": 13,
    "SYS_CHROOT": 18,
    "MKNOD": 27,
    "AUDIT_WRITE": 29,
    "SETFCAP": 31,
}
"""Default capabilities of root in containerd 2.0 (oci/spec.go); numbers of linux/capability.h."""

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Default search path (containerd 2.0, oci/spec_opts.go)."""

KILL: Final = signal.SIGUSR1
"""Signal to the program that waits for a container, which kills the container. SIGTERM is forwarded to it."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount of a file or folder of this machine. A missing target is created in the container."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A container.

    Attributes:
        scratch: An empty folder, on which the root is assembled.
        lower: The folders of the root, the topmost last.
        argv: The command.
        env: The environment variables.
        cwd: The working directory.
        uid: The user.
        gid: The group; None for the user's primary group in the root's own /etc/passwd.
        groups: Supplementary groups.
        capabilities: The numbers of the remaining capabilities.
        no_new_privileges: Whether setuid programs gain no privileges.
        mounts: The mounts.
        links: Symbolic links by path.
        read_only: Whether the root is read-only.
        network: The file of a network namespace; None for one without interfaces.
        hostname: The host name.
    """

    scratch: str
    lower: Sequence[str]
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str = "/"
    uid: int = 0
    gid: int | None = None
    groups: Sequence[int] = ()
    capabilities: Sequence[int] = tuple(CAPABILITIES.values())
    no_new_privileges: bool = False
    mounts: Sequence[Mount] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    read_only: bool = False
    network: str | None = None
    hostname: str = "localhost"

    def written(self) -> bytes:
        """Return the container as JSON."""
        return json.dumps(asdict(self)).encode()


def read(text: str) -> Sandbox:
    """Parse the result of `written`."""
    value: dict[str, Any] = json.loads(text)
    mounts = [Mount(**mount) for mount in value.pop("mounts")]
    return Sandbox(mounts=mounts, **value)


def command(report: int = -1) -> list[str]:
    """Return the program that reads a sandbox from its standard input and runs it.

    The program writes JSON lines to the descriptor `report` unless it is -1: `pid` of the container's first process,
    and `error`. The end of the file without an error means that the command runs.
    """
    return [sys.executable, "-S", "-m", "kubefoundry_nodes.kubelet.enter", str(os.getpid()), str(report)]


def environment() -> dict[str, str]:
    """Return the environment of that program. The container does not get it."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
