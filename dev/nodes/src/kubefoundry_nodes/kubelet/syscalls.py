"""System calls that Python lacks. Numbers are those of the Linux headers; every function raises OSError."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import signal
import socket
import struct
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_RDONLY: Final = 0x1
MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_REMOUNT: Final = 0x20
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000
MNT_DETACH: Final = 0x2

PR_SET_PDEATHSIG: Final = 1
PR_CAPBSET_DROP: Final = 24
PR_SET_NO_NEW_PRIVS: Final = 38

PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
"""Number of the call by machine; the C library has no function for it."""

SIOCGIFFLAGS: Final = 0x8913
SIOCSIFFLAGS: Final = 0x8914
IFF_UP: Final = 0x1

_libc: Final = ctypes.CDLL(None, use_errno=True)


def _check(result: int, call: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(path: str, kind: int) -> None:
    """Enter the namespace of a file."""
    with open(path, "rb") as file:  # noqa: PTH123 - /proc files are no place for more than a descriptor
        _check(_libc.setns(file.fileno(), kind), f"setns {path}")


def mount(source: str, target: str, filesystem: str = "", flags: int = 0, options: str = "") -> None:
    words = [word.encode() or None for word in (source, target, filesystem)]
    result = _libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None)
    _check(result, f"mount {source or filesystem} on {target}")


def bind(source: str, target: str, *, read_only: bool = False) -> None:
    mount(source, target, flags=MS_BIND)
    if read_only:
        mount("", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)


def unmount(target: str) -> None:
    """Detach a mount at once; it ends once nobody uses it."""
    _check(_libc.umount2(target.encode(), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root of all processes of the mount namespace, and move the previous root to `old`."""
    number = PIVOT_ROOT[platform.machine()]
    _check(_libc.syscall(number, new.encode(), old.encode()), f"pivot_root {new}")


def prctl(option: int, value: int) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def end_with(parent: int) -> None:
    """Kill the calling process when its parent ends, or the parent's thread that created it."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def loopback_up() -> None:
    """Enable the loopback interface of the caller's network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sH22x", b"lo", 0))
        [flags] = struct.unpack_from("16xH", request)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | IFF_UP))
