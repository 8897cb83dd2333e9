"""The locked interpreter on this machine: its compiler and zlib decide the bytes of a layer, not the machine's."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from images.debian import MACHINES, Failure
from images.tree import File, Folder, Link, Tree

LOADERS: Final = {
    "amd64": "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "arm64": "lib/aarch64-linux-gnu/ld-linux-aarch64.so.1",
}
"""The files themselves: the usual paths may be absolute links, and would lead to the loader of this machine."""

PROGRAM: Final = "usr/bin/python3.11"
COMPRESS: Final = (
    "import gzip, sys; sys.stdout.buffer.write(gzip.compress(sys.stdin.buffer.read(), 6, mtime=0))"
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The interpreter, unpacked into `root`."""

    root: Path
    architecture: str

    def run(self, arguments: Sequence[str], given: bytes = b"") -> bytes:
        """Run it, and return its output. Raises CalledProcessError."""
        loader = self.root / LOADERS[self.architecture]
        libraries = f"{loader.parent}:{self.root / 'usr' / loader.parent.relative_to(self.root)}"
        command = [
            *(str(loader), "--library-path", libraries),
            *(str(self.root / PROGRAM), "-I", "-S", "-B"),
            *arguments,
        ]
        return subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True, env={}).stdout

    def compress(self, archive: bytes) -> bytes:
        """Compress an archive with gzip."""
        return self.run(["-c", COMPRESS], archive)

    def compile(self, sources: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the compiled files of sources, both by path. Sources that are no Python 3.11 have none."""
        with tempfile.TemporaryDirectory() as work:
            for path, content in sources.items():
                file = Path(work, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            self.run([str(Path(__file__).with_name("compile_files.py")), work])
            return {
                str(path.relative_to(work)): path.read_bytes() for path in sorted(Path(work).rglob("*.pyc"))
            }


@contextmanager
def unpacked(tree: Tree, architecture: str) -> Iterator[Interpreter]:
    """Unpack the interpreter of an architecture for a while."""
    with tempfile.TemporaryDirectory() as work:
        for path, entry in tree.items():
            file = Path(work, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            match entry:
                case File():
                    file.write_bytes(entry.content)
                    file.chmod(0o755 if entry.executable else 0o644)
                case Link():
                    file.symlink_to(entry.target)
                case Folder():
                    file.mkdir(exist_ok=True)
        yield Interpreter(Path(work), architecture)


def machine() -> str:
    """Return Debian's name of this machine's architecture. Raises Failure."""
    name = platform.machine()
    names = {kernel: debian for debian, kernel in MACHINES.items()}
    if platform.system() != "Linux" or name not in names:
        raise Failure(
            f"building images needs Linux on {' or '.join(names)}, not {platform.system()} on {name}"
        )
    return names[name]


class Compiler:
    """Compiles each source once, although most are in several images."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._compiled: dict[tuple[str, str], bytes | None] = {}

    def with_compiled(self, tree: Tree) -> Tree:
        """Return a tree with the compiled files of its sources."""
        sources = {
            path: entry.content
            for path, entry in tree.items()
            if isinstance(entry, File) and path.endswith(".py")
        }
        compiled = self._compile(sources)
        return {**tree, **{name: File(content) for name, content in compiled.items() if content is not None}}

    def _compile(self, sources: dict[str, bytes]) -> dict[str, bytes | None]:
        """Return the content of each compiled file by its name; None if its source cannot be compiled."""
        keys = {path: (path, hashlib.sha256(content).hexdigest()) for path, content in sources.items()}
        new = {path: content for path, content in sources.items() if keys[path] not in self._compiled}
        compiled = self._interpreter.compile(new) if new else {}
        for path in new:
            self._compiled[keys[path]] = compiled.get(_compiled_name(path))
        return {_compiled_name(path): self._compiled[key] for path, key in keys.items()}


def _compiled_name(path: str) -> str:
    source = PurePosixPath(path)
    return str(source.parent / "__pycache__" / f"{source.stem}.cpython-311.pyc")
