"""Images built as their Containerfile says, with the instructions that `init` writes, and without any network."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Final

from kubefoundry_nodes.images import environment
from kubefoundry_nodes.kubelet.image import Image
from pods.images import provider

OFFLINE: Final = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_BUILD_ISOLATION": "0",
    "PIP_PYTHON": f"{provider.HOME}/bin/python3",
}
"""pip takes the packages that build wheels from the base image. `0` switches the isolation off."""

CHANGES: Final = (
    "touch /.start; {} && "
    "find / -xdev -cnewer /.start -type f -print0 | tar --create --null --files-from=- | "
    "tar --extract --directory=/.layer"
)
"""Runs a command, and copies the files that it wrote to the root file system."""


class Unsupported(Exception):
    """Raised for an instruction that the build does not know."""


@dataclass(slots=True)
class Build:
    """A build.

    Attributes:
        context: The folder of the sources.
        work: An empty folder for the layers.
        arguments: The values of ARG.
        stages: The finished stages by name.
        image: The current stage.
    """

    context: Path
    work: Path
    arguments: dict[str, str] = field(default_factory=dict)
    stages: dict[str, Image] = field(default_factory=dict)
    image: Image = field(default_factory=lambda: base(""))
    _count: int = 0

    def follow(self, instruction: str, text: str) -> None:
        """Follow one instruction.

        Raises:
            Unsupported: The instruction is unknown.
            RuntimeError: A command failed; the message has its output.
        """
        match instruction:
            case "ARG":
                name, _, value = text.partition("=")
                self.arguments[name] = value
            case "FROM":
                reference, _, stage = Template(text).substitute(self.arguments).partition(" AS ")
                self.image = base(reference)
                self.stages[stage] = self.image
            case "COPY":
                self._copy(shlex.split(text))
            case "RUN":
                layer = self._new_layer()
                # The finished image does not keep these variables.
                builder = replace(self.image, env=OFFLINE)
                environment.step(builder, ["sh", "-ec", CHANGES.format(text)], {"/.layer": layer})
                self._add(layer)
            case "USER":
                self._change(replace(self.image, user=int(text)))
            case "CMD":
                self._change(replace(self.image, command=tuple(json.loads(text))))
            case _:
                raise Unsupported(f"{instruction} {text}")

    def _copy(self, words: list[str]) -> None:
        roots: Iterable[Path] = (self.context,)
        if words[0].startswith("--from="):
            roots = self.stages[words.pop(0).removeprefix("--from=")].layers
        *sources, target = words
        layer = self._new_layer()
        place = layer / target.strip("/")
        for source in sources:
            found = [path for root in roots if (path := root / source.lstrip("/")).exists()]
            if not found:
                raise FileNotFoundError(f"COPY {source}: there is no such file")
            for path in found:
                _copy_tree(path, place / path.name if path.is_file() and target.endswith("/") else place)
        self._add(layer)

    def _new_layer(self) -> Path:
        self._count += 1
        layer = self.work / str(self._count)
        layer.mkdir(parents=True)
        return layer

    def _add(self, layer: Path) -> None:
        for path in (layer, *layer.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        self._change(replace(self.image, layers=(*self.image.layers, layer)))

    def _change(self, image: Image) -> None:
        for name, stage in self.stages.items():
            if stage is self.image:
                self.stages[name] = image
        self.image = image


def base(reference: str) -> Image:
    """Return the image that replaces every base image: Debian's Python with pip and packages that build wheels."""
    return Image(reference, (environment.layer(provider.LOCK, provider.HOME),))


def build(name: str, context: Path, work: Path) -> Image:
    """Build the image of the Containerfile in the context, as `podman build` does.

    Raises:
        Unsupported: An instruction is unknown.
        RuntimeError: A command failed.
    """
    made = Build(context, work)
    for instruction, text in instructions((context / "Containerfile").read_text()):
        made.follow(instruction, text)
    return replace(made.image, name=name)


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions of a Containerfile with their arguments."""
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            instruction, _, rest = line.partition(" ")
            yield instruction, rest


def _copy_tree(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copyfile(source, target)
    else:
        shutil.copytree(source, target, dirs_exist_ok=True)
