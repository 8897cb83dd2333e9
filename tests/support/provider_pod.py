"""A pod without a cluster: its volumes as folders, and the tool as a container starts it."""

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
"""The search path of an image. pip runs a Rust compiler for its version at each start if it finds one."""

LONG: Final = 50_000
"""Characters of arguments that fit into a request for a fork."""


def python_with_pip(folder: Path) -> str:
    """Create a Python with pip and no other package, as in an image, and return its path."""
    venv.create(folder, symlinks=True)
    [site_packages] = folder.glob("lib/python*/site-packages")
    assert pip.__file__ is not None
    pip_folder = Path(pip.__file__).parent
    for part in (pip_folder, *pip_folder.parent.glob("pip-*.dist-info")):
        (site_packages / part.name).symlink_to(part)
    return str(folder / "bin" / "python")


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a container: exit code, all output (`log`) and termination message."""

    code: int
    log: str
    message: str


@dataclass(slots=True)
class Pod:
    """A simulated pod.

    Attributes:
        root: The folder that stands for `/`.
        tool: The zipapp.
        images: Image references at /lls-provider, by provider id.
        python: The image's interpreter.
    """

    root: Path
    tool: Path
    images: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable

    @property
    def places(self) -> layout.Layout:
        """Return the tool's paths in this pod."""
        return layout.Layout(self.root)

    @property
    def shared(self) -> Path:
        """Return the shared volume."""
        return self.places.shared

    def copied(self, root: Path) -> Pod:
        """Return a pod with a copy of the volumes."""
        shutil.copytree(self.root, root, symlinks=True)
        return Pod(root, self.tool, dict(self.images), self.python)

    def call(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        python: str = "",
        within: Sequence[str] = (),
    ) -> Ended:
        """Run the tool as a container does. `within` is a command that starts it in another environment.

        A usual start is a fork of a server with preloaded libraries. Another interpreter, a wrapper, variables that
        Python reads at its start, long arguments and a packed zipapp need a new process.
        """
        message = self.places.at(layout.TERMINATION_LOG)
        message.parent.mkdir(parents=True, exist_ok=True)
        message.write_text("")
        changed = dict(env or {})
        started_with = {name for name in changed if name.startswith("PYTHON")} - {"PYTHONPATH"}
        if not (within or python or started_with or sum(map(len, arguments)) > LONG or self.tool.is_file()):
            code, log = run_folder(self.python, self.tool, arguments, {**os.environ, **SEARCHED, **changed})
            return Ended(code, log, message.read_text())
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
        """Run a command of the tool with an input."""
        return self.call(name, "--root", str(self.root), "--input", *request.encode(value), **how)

    def install_arguments(self, image: Path, provider_id: str, **changes: Any) -> list[str]:
        """Mount the image, and return the arguments of its install container."""
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
        """Run the install container of an image."""
        return self.call(*self.install_arguments(image, provider_id, **changes), env=env)

    def base(self, text: str) -> None:
        """Write the base configuration."""
        self.places.base_config.parent.mkdir(parents=True, exist_ok=True)
        self.places.base_config.write_text(text)

    def merge(self, *models: Mapping[str, Any], env: Mapping[str, str] | None = None, **fields: str) -> Ended:
        """Run the container that merges the configurations. `fields`: more of the operator's input."""
        providers = [{"providerId": id_, "image": image} for id_, image in self.images.items()]
        value = {"image": "distribution:1", "container": "merge-config", "providers": providers}
        return self.command("merge-config", {**value, **fields, "modelDeployments": list(models)}, env=env)

    def tree(self) -> str:
        """Return a hash of path, mode and bytes of all files on the shared volume."""
        digest = hashlib.sha256()
        for path in sorted(self.shared.rglob("*")):
            about = f"{path.relative_to(self.shared)} {path.lstat().st_mode:o}\n".encode()
            digest.update(about + (path.read_bytes() if path.is_file() else b""))
        return digest.hexdigest()

    def installed(self) -> set[str]:
        """Return the modules below python-packages, without metadata."""
        packages = self.places.packages
        return {path.relative_to(packages).as_posix() for path in packages.rglob("*.py")}
