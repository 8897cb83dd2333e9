"""A pod without a cluster: folders in the places where containers have them, and the tool as they start it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pip

from llamastack_providers import layout, request
from support.preloaded.client import run_folder

SEARCHED: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
"""The search path of an image: pip asks a Rust compiler, wherever there is one, for its version at each start."""

LONG: Final = 50_000
"""Letters of arguments that fit into a message to the process that is forked."""


def python_with_pip(folder: Path) -> str:
    """Makes a Python with pip and no other package, as an image has it; returns its path."""
    venv.create(folder, symlinks=True)
    [theirs] = folder.glob("lib/python*/site-packages")
    assert pip.__file__ is not None
    own = Path(pip.__file__).parent
    for part in (own, *own.parent.glob("pip-*.dist-info")):
        (theirs / part.name).symlink_to(part)
    return str(folder / "bin" / "python")


@dataclass(frozen=True, slots=True)
class Ended:
    """code: exit code. log: all output. message: the termination message."""

    code: int
    log: str
    message: str


@dataclass(slots=True)
class Pod:
    """root: where all paths begin. tool: the zipapp. images: what is at /lls-provider, by provider id. python: the
    image's."""

    root: Path
    tool: Path
    images: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable

    @property
    def places(self) -> layout.Layout:
        return layout.Layout(self.root)

    @property
    def shared(self) -> Path:
        return self.places.shared

    def copied(self, root: Path) -> Pod:
        """A pod with the same on its volumes."""
        shutil.copytree(self.root, root, symlinks=True)
        return Pod(root, self.tool, dict(self.images), self.python)

    def call(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        python: str = "",
        within: Sequence[str] = (),
    ) -> Ended:
        """Runs the zipapp as a container does. within: a command that starts it in other surroundings.

        With nothing unusual about the start itself, the process is forked from one that has loaded the libraries.
        """
        message = self.places.at(layout.TERMINATION_LOG)
        message.parent.mkdir(parents=True, exist_ok=True)
        message.write_text("")
        changed = dict(env or {})
        started_with = {name for name in changed if name.startswith("PYTHON")} - {"PYTHONPATH"}
        if not (within or python or started_with or sum(map(len, arguments)) > LONG or self.tool.is_file()):
            code, said = run_folder(self.python, self.tool, arguments, {**os.environ, **SEARCHED, **changed})
            return Ended(code, said, message.read_text())
        done = subprocess.run(
            [*within, python or self.python, str(self.tool), *arguments],
            env={**os.environ, **SEARCHED, **changed},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Ended(done.returncode, done.stdout, message.read_text())

    def command(self, name: str, value: Mapping[str, Any], **how: Any) -> Ended:
        return self.call(name, "--root", str(self.root), "--input", *request.encode(value), **how)

    def install_arguments(self, image: Path, provider_id: str, **changes: Any) -> list[str]:
        """Puts the image in place; the arguments of its install container."""
        self.root.mkdir(parents=True, exist_ok=True)
        link = self.root / "lls-provider"
        link.unlink(missing_ok=True)
        link.symlink_to(image)
        order = list(self.images).index(provider_id) if provider_id in self.images else len(self.images)
        value = {
            "providerId": provider_id,
            "image": f"images/{image.name}:1",
            "container": f"external-provider-{provider_id}",
            "api": "inference",
            "order": order,
            **changes,
        }
        self.images[provider_id] = value["image"]
        return ["install", "--root", str(self.root), "--input", *request.encode(value)]

    def install(
        self, image: Path, provider_id: str, *, env: Mapping[str, str] | None = None, **changes: Any
    ) -> Ended:
        return self.call(*self.install_arguments(image, provider_id, **changes), env=env)

    def base(self, text: str) -> None:
        """The base configuration."""
        self.places.base_config.parent.mkdir(parents=True, exist_ok=True)
        self.places.base_config.write_text(text)

    def merge(self, *models: Mapping[str, Any], env: Mapping[str, str] | None = None) -> Ended:
        providers = [{"providerId": one, "image": image} for one, image in self.images.items()]
        value = {"image": "distribution:1", "container": "merge-config", "providers": providers}
        return self.command("merge-config", {**value, "modelDeployments": list(models)}, env=env)

    def tree(self) -> str:
        """One hash over path, mode and bytes of everything on the shared volume."""
        digest = hashlib.sha256()
        for path in sorted(self.shared.rglob("*")):
            about = f"{path.relative_to(self.shared)} {path.lstat().st_mode:o}\n".encode()
            digest.update(about + (path.read_bytes() if path.is_file() else b""))
        return digest.hexdigest()

    def installed(self) -> set[str]:
        """The modules below python-packages, without their metadata."""
        found = (path.relative_to(self.places.packages) for path in self.places.packages.rglob("*.py"))
        return {path.as_posix() for path in found}
