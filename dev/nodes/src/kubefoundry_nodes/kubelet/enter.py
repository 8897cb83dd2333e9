"""Create the sandbox that standard input describes, and run its command. The module runs as a program.

It has two processes. The first one waits, forwards signals and ends with the exit code of a container runtime (for a
signal: 128 and its number). The second one is process 1 of the container. Both end with the parent of the first one.
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
    """Run the sandbox, and return its exit code. `report`: descriptor for JSON lines, or -1."""
    syscalls.end_with(parent)
    container = sandbox.read(sys.stdin.read())
    if report >= 0:
        os.set_inheritable(report, False)
    if container.network is None:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        syscalls.loopback_up()
    else:
        syscalls.setns(container.network, syscalls.CLONE_NEWNET)
    syscalls.unshare(
        syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWIPC
    )
    socket.sethostname(container.hostname)
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDED_ON)
    alive, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        become(container, report, alive)
    if report >= 0:
        os.write(report, json.dumps({"pid": child}).encode() + b"\n")
        os.close(report)
    # After the wait, another process may get the same number. A pidfd stays with this process.
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


def become(container: Sandbox, report: int, alive: int) -> NoReturn:
    """Become the container's first process. `alive`: a pipe whose other end the waiting process holds."""
    try:
        os.setsid()
        end_with_waiting(alive)
        make_root(container)
        start(container, alive)
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            # The runtime counts this as a failed run, because it occurs after all other steps.
            print(f"exec {container.argv[0]}: exec format error", file=sys.stderr, flush=True)
            os._exit(1)
        text = describe(error, container.argv[0])
        if report >= 0:
            os.write(report, json.dumps({"error": text}).encode() + b"\n")
        else:
            print(text, file=sys.stderr, flush=True)
        os._exit(CANNOT_START)


def end_with_waiting(alive: int) -> None:
    """End with the parent, as syscalls.end_with does. The parent has no number in this process namespace."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.set_blocking(alive, False)
    with contextlib.suppress(BlockingIOError):
        os.read(alive, 1)
        os._exit(CANNOT_START)


def describe(error: OSError, program: str) -> str:
    """Return containerd's message for a program that cannot be started."""
    if not isinstance(error, FileNotFoundError):
        return f"{error.strerror or error}: unknown"
    if "/" in program:
        return f'exec: "{program}": stat {program}: no such file or directory: unknown'
    return f'exec: "{program}": executable file not found in $PATH: unknown'


def make_root(container: Sandbox) -> None:
    """Assemble the root file system and change to it. No file of this machine stays reachable."""
    syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    scratch = Path(container.scratch)
    syscalls.mount("tmpfs", str(scratch), "tmpfs", options="mode=755")
    upper, work, root = (scratch / name for name in ("upper", "work", "root"))
    for folder in (upper, work, root):
        folder.mkdir()
    layers = ":".join(reversed(container.lower))
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
    # A mount inside another mount comes after it.
    for mount in sorted(container.mounts, key=lambda mount: mount.target.rstrip("/").count("/")):
        source = f"{OLD}{mount.source}"
        if Path(source).is_dir():
            ensure_folder(mount.target)
        elif not Path(mount.target).exists():
            ensure_folder(str(Path(mount.target).parent))
            Path(mount.target).touch()
        syscalls.bind(source, mount.target, read_only=mount.read_only)
    for link, target in container.links.items():
        Path(link).unlink(missing_ok=True)
        Path(link).symlink_to(target)
    ensure_folder(container.cwd)
    syscalls.unmount(OLD)
    Path(OLD).rmdir()
    if container.read_only:
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


def start(container: Sandbox, alive: int) -> NoReturn:
    """Change to the user and execute the program. Raises OSError."""
    with open("/dev/null", "rb") as nothing:  # noqa: PTH123 - for its descriptor
        os.dup2(nothing.fileno(), 0)
    os.umask(0o022)
    os.chdir(container.cwd)
    gid, home = account(container.uid)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for capability in range(last + 1):
        if capability not in container.capabilities:
            syscalls.prctl(syscalls.PR_CAPBSET_DROP, capability)
    os.setgroups(list(container.groups))
    os.setgid(gid if container.gid is None else container.gid)
    os.setuid(container.uid)
    # The change of the user cleared the parent-death signal.
    end_with_waiting(alive)
    if container.no_new_privileges:
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    env = {"PATH": sandbox.PATH, "HOME": home, "HOSTNAME": container.hostname, **container.env}
    os.execvpe(container.argv[0], list(container.argv), env)


def account(uid: int) -> tuple[int, str]:
    """Return primary group and home of a user from the root's own /etc/passwd."""
    with contextlib.suppress(FileNotFoundError):
        for line in Path("/etc/passwd").read_text().splitlines():
            fields = line.split(":")
            if len(fields) > 5 and fields[2] == str(uid):
                return int(fields[3]), fields[5]
    return 0, "/"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
