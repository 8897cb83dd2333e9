"""Images as folders, and their common root."""

from __future__ import annotations

import functools
import hashlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Image:
    """An image.

    Attributes:
        name: The name with the tag.
        layers: Folders over the common root, the last one on top.
        complete: Whether the layers are the whole root, without the common one.
        entrypoint: The command of the image.
        command: The default arguments.
        env: Environment variables.
        user: The id of its user.
        workdir: The working directory.
    """

    name: str
    layers: tuple[Path, ...] = ()
    complete: bool = False
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    user: int = 0
    workdir: str = "/"

    @property
    def digest(self) -> str:
        """A digest of the image's attributes, without the content of its folders."""
        return f"sha256:{hashlib.sha256(repr(self).encode()).hexdigest()}"

    @property
    def folders(self) -> list[str]:
        """The folders of the root file system, the topmost last."""
        common = () if self.complete else (shared_root(),)
        return [str(path.resolve()) for path in (*common, *self.layers)]


@functools.cache
def shared_root() -> Path:
    """Return the folder of Debian trixie with Python, which the program `root` creates once.

    Raises:
        CalledProcessError: The program failed.
    """
    script = Path(__file__).with_name("root")
    result = subprocess.run([str(script)], stdout=subprocess.PIPE, text=True, check=True)
    return Path(result.stdout.strip())
