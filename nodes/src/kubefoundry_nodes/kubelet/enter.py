"""Makes the sandbox that stands on standard input and runs its command; as a program of its own.

Two processes: the first waits, hands signals on and ends with the exit code that a container runtime would tell
(128 and the signal's number for a signal). The second is process 1 of the container. Both end with whoever started
the first.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Final, NoReturn

from kubefoundry_nodes.kubelet import sandbox, syscalls
from kubefoundry_nodes.kubelet.sandbox import Sandbox

DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
HANDED_ON: Final = {signal.SIGTERM: signal.SIGTERM, sandbox.KILL: signal.SIGKILL}
OLD: Final = "/.old"
CANNOT_START: Final = 128
"""Exit code of a container whose command could not be started (kubelet 1.36 with containerd)."""


def main(parent: int, report: int) -> int:
    syscalls.end_with(parent)
    wanted = sandbox.read(sys.stdin.read())
    if report >= 0:
        os.set_inheritable(report, False)
    if wanted.network is None:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        syscalls.loopback_up()
    else:
        syscalls.setns(wanted.network, syscalls.CLONE_NEWNET)
    syscalls.unshare(
        syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWIPC
    )
    socket.sethostname(wanted.hostname)
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDED_ON)
    alive, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        become(wanted, report, alive)
    if report >= 0:
        os.write(report, json.dumps({"pid": child}).encode() + b"\n")
        os.close(report)
    # A number may be another process's once we have waited for ours; this may not.
    process = os.pidfd_open(child)
    for received, sent in HANDED_ON.items():
        signal.signal(received, functools.partial(hand_on, process, sent))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDED_ON)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def hand_on(process: int, number: signal.Signals, *_: object) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, number)


def become(wanted: Sandbox, report: int, alive: int) -> NoReturn:
    """Does not return. alive: a pipe whose other end the waiting process holds."""
    try:
        os.setsid()
        end_with_waiting(alive)
        make_root(wanted)
        start(wanted, alive)
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            # Seen only when all else is done: the runtime counts it as a run that failed.
            print(f"exec {wanted.argv[0]}: exec format error", file=sys.stderr, flush=True)
            os._exit(1)
        text = says(error, wanted.argv[0])
        if report >= 0:
            os.write(report, json.dumps({"error": text}).encode() + b"\n")
        else:
            print(text, file=sys.stderr, flush=True)
        os._exit(CANNOT_START)


def end_with_waiting(alive: int) -> None:
    """As syscalls.end_with; the parent is outside this process namespace, where it has no number to ask for."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.set_blocking(alive, False)
    with contextlib.suppress(BlockingIOError):
        os.read(alive, 1)
        os._exit(CANNOT_START)


def says(error: OSError, program: str) -> str:
    """The words of containerd where the program is not there."""
    if not isinstance(error, FileNotFoundError):
        return f"{error.strerror or error}: unknown"
    if "/" in program:
        return f'exec: "{program}": stat {program}: no such file or directory: unknown'
    return f'exec: "{program}": executable file not found in $PATH: unknown'


def make_root(wanted: Sandbox) -> None:
    """Puts the root together and moves there; nothing of this machine stays within reach."""
    syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    scratch = Path(wanted.scratch)
    syscalls.mount("tmpfs", str(scratch), "tmpfs", options="mode=755")
    upper, work, root = (scratch / name for name in ("upper", "work", "root"))
    for folder in (upper, work, root):
        folder.mkdir()
    layers = ":".join(reversed(wanted.lower))
    syscalls.mount(
        "overlay", str(root), "overlay", options=f"lowerdir={layers},upperdir={upper},workdir={work}"
    )
    (root / OLD[1:]).mkdir()
    syscalls.pivot_root(str(root), f"{root}{OLD}")
    os.chdir("/")
    ensure_folder("/proc")
    flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
    syscalls.mount("proc", "/proc", "proc", flags)
    syscalls.mount("sysfs", "/sys", "sysfs", flags | syscalls.MS_RDONLY)
    make_devices()
    # A mount within another one comes after it.
    for one in sorted(wanted.mounts, key=lambda one: one.target.rstrip("/").count("/")):
        source = f"{OLD}{one.source}"
        if Path(source).is_dir():
            ensure_folder(one.target)
        elif not Path(one.target).exists():
            ensure_folder(str(Path(one.target).parent))
            Path(one.target).touch()
        syscalls.bind(source, one.target, read_only=one.read_only)
    for link, target in wanted.links.items():
        Path(link).unlink(missing_ok=True)
        Path(link).symlink_to(target)
    ensure_folder(wanted.cwd)
    syscalls.unmount(OLD)
    Path(OLD).rmdir()
    if wanted.read_only:
        syscalls.mount("", "/", flags=syscalls.MS_REMOUNT | syscalls.MS_BIND | syscalls.MS_RDONLY)


def ensure_folder(path: str) -> None:
    Path(path).mkdir(parents=True, exist_ok=True)


def make_devices() -> None:
    ensure_folder("/dev")
    syscalls.mount("tmpfs", "/dev", "tmpfs", syscalls.MS_NOSUID, "mode=755,size=64k")
    for name in DEVICES:
        Path(f"/dev/{name}").touch()
        syscalls.bind(f"{OLD}/dev/{name}", f"/dev/{name}")
    for name, target in LINKS.items():
        Path(f"/dev/{name}").symlink_to(target)
    Path("/dev/shm").mkdir()
    syscalls.mount("shm", "/dev/shm", "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=1777,size=64m")


def start(wanted: Sandbox, alive: int) -> NoReturn:
    """Becomes the user and the program. Raises OSError."""
    with open("/dev/null", "rb") as nothing:  # noqa: PTH123 - for its descriptor
        os.dup2(nothing.fileno(), 0)
    os.umask(0o022)
    os.chdir(wanted.cwd)
    gid, home = account(wanted.uid)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for capability in range(last + 1):
        if capability not in wanted.capabilities:
            syscalls.prctl(syscalls.PR_CAPBSET_DROP, capability)
    os.setgroups(list(wanted.groups))
    os.setgid(gid if wanted.gid is None else wanted.gid)
    os.setuid(wanted.uid)
    # Changing the user took it away.
    end_with_waiting(alive)
    if wanted.no_new_privileges:
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    env = {"PATH": sandbox.PATH, "HOME": home, "HOSTNAME": wanted.hostname, **wanted.env}
    os.execvpe(wanted.argv[0], list(wanted.argv), env)


def account(uid: int) -> tuple[int, str]:
    """Primary group and home of the user in the root's own /etc/passwd."""
    with contextlib.suppress(FileNotFoundError):
        for line in Path("/etc/passwd").read_text().splitlines():
            fields = line.split(":")
            if len(fields) > 5 and fields[2] == str(uid):
                return int(fields[3]), fields[5]
    return 0, "/"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
