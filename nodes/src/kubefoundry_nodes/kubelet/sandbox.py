"""What a container is made of, as far as the kernel knows it; enter.py makes it."""

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
"""What root may do in a container of containerd 2.0 that asks for nothing (its oci/spec.go); numbers of
linux/capability.h."""

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where the image names none (containerd 2.0, oci/spec_opts.go)."""

KILL: Final = signal.SIGUSR1
"""Sent to the program that waits for a container: kills the container. SIGTERM is handed on to it."""


@dataclass(frozen=True, slots=True)
class Mount:
    """source: on this machine. target: in the container; made where it is missing."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Sandbox:
    """lower: folders of the root, the topmost last. scratch: an empty folder, on which the root is put together.

    network: file of a network namespace, None for one without interfaces. links: symbolic links to make. gid: None
    for the primary group of the user in the root's own /etc/passwd. capabilities: numbers of those that are left.
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
        return json.dumps(asdict(self)).encode()


def read(text: str) -> Sandbox:
    """The opposite of `written`."""
    value: dict[str, Any] = json.loads(text)
    mounts = [Mount(**one) for one in value.pop("mounts")]
    return Sandbox(mounts=mounts, **value)


def command(report: int = -1) -> list[str]:
    """The program that reads a sandbox from its standard input and becomes it. It says how that went in JSON lines on
    the descriptor `report`, where there is one: `pid` of the container's first process, `error`; the end of the file
    stands for: it runs."""
    return [sys.executable, "-S", "-m", "kubefoundry_nodes.kubelet.enter", str(os.getpid()), str(report)]


def environment() -> dict[str, str]:
    """Of that program; nothing of it reaches the container."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
