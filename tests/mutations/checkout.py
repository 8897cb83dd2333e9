"""A copy of the checkout with a Python of its own, so that nothing here is ever changed by a mutation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from mutations.catalogue import Mutation
from support.upstream import SHARED

LEFT_OUT: Final = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")

SECONDS: Final = 240
"""Bound on one test: a mutation may make it wait for what never comes."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A checkout whose `.venv` holds console scripts and packages of ours as they are there, and all else of ours."""

    root: Path

    def pytest(self, *tests: str) -> subprocess.CompletedProcess[str]:
        """Runs these tests there."""
        return subprocess.run(
            [
                str(self.root / ".venv" / "bin" / "python"),
                *("-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "--tb=line"),
                *(f"--timeout={SECONDS}", *tests),
            ],
            cwd=self.root,
            env={**os.environ, "KUBEFOUNDRY_SHARED": str(SHARED)},
            capture_output=True,
            text=True,
            check=False,
        )

    @contextmanager
    def mutated(self, mutation: Mutation) -> Iterator[None]:
        """Raises ValueError where the mutation does not fit."""
        path = self.root / mutation.file
        text = path.read_text(encoding="utf-8")
        try:
            self._write(path, mutation.mutate(text))
            yield
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        """Without what Python compiled before: it tells sources apart by second and size only."""
        path.write_text(text, encoding="utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()


def copy(root: Path, folder: Path) -> Copy:
    """Copies the checkout `root` into the folder, and makes it run from there."""
    made = folder / root.name
    shutil.copytree(
        root, made, ignore=lambda parent, names: left_out(root, Path(parent), names), symlinks=True
    )
    environment = made / ".venv"
    venv.create(environment, symlinks=True)
    packages = Path(sysconfig.get_path("purelib"))
    sources = [made / path.relative_to(root) for path in editable(packages) if path.is_relative_to(root)]
    scheme = {"base": str(environment), "platbase": str(environment)}
    own = Path(sysconfig.get_path("purelib", vars=scheme))
    # A path that is in such a file is searched, its own such files are not read: ours come from the copy alone.
    (own / "copy.pth").write_text("".join(f"{path}\n" for path in (*sources, packages)))
    for script in Path(sys.executable).parent.glob("kube*"):
        text = script.read_text().replace(sys.executable, str(environment / "bin" / "python"), 1)
        (environment / "bin" / script.name).write_text(text)
        (environment / "bin" / script.name).chmod(0o755)
    return Copy(made)


def left_out(root: Path, folder: Path, names: Sequence[str]) -> list[str]:
    """What is recreated or not needed; `build` at the top is a folder of results, elsewhere a program."""
    patterns = ("build", *LEFT_OUT) if folder == root else LEFT_OUT
    return [name for name in names if any(fnmatch(name, pattern) for pattern in patterns)]


def editable(packages: Path) -> Sequence[Path]:
    """Source folders of what is installed in place."""
    lines = [line for file in sorted(packages.glob("*.pth")) for line in file.read_text().splitlines()]
    return [Path(line) for line in lines if line.startswith("/")]
