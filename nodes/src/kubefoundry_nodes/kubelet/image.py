"""Images as folders, and the root that they all share."""

from __future__ import annotations

import functools
import hashlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Image:
    """layers: folders laid over the shared root, the last on top. user: id of the user that it runs as."""

    name: str
    layers: tuple[Path, ...] = ()
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    user: int = 0
    workdir: str = "/"

    @property
    def digest(self) -> str:
        """`sha256:` over all that the image states; the content of its folders does not count."""
        return f"sha256:{hashlib.sha256(repr(self).encode()).hexdigest()}"

    @property
    def folders(self) -> list[str]:
        """Of its root, the topmost last."""
        return [str(path.resolve()) for path in (shared_root(), *self.layers)]


@functools.cache
def shared_root() -> Path:
    """Debian trixie with Python; the program `root` beside this file makes it once. Raises CalledProcessError."""
    script = Path(__file__).with_name("root")
    made = subprocess.run([str(script)], stdout=subprocess.PIPE, text=True, check=True)
    return Path(made.stdout.strip())
