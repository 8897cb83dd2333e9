"""Build the images of components into OCI layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from images import debian, layers, layout, licences, provenance, sbom, tree, wheels
from images.components import Component, components
from images.interpreter import Compiler, Interpreter, machine, unpacked
from images.layout import Blobs, Image, Layer
from images.tree import Tree
from images.wheels import Wheel


@dataclass(frozen=True, slots=True)
class Built:
    """A written image. Sizes are in bytes, by architecture."""

    component: str
    digest: str
    unpacked: Mapping[str, int]
    compressed: Mapping[str, int]

    def __str__(self) -> str:
        sizes = ", ".join(
            f"{name} {self.unpacked[name] / 1e6:.1f} MB ({self.compressed[name] / 1e6:.1f} packed)"
            for name in self.unpacked
        )
        return f"{self.component:18} {self.digest}  {sizes}"


@dataclass(frozen=True, slots=True)
class Machine:
    """What the images of an architecture share. `packages`: of Debian, with their licences."""

    architecture: str
    packages: Mapping[debian.Package, Sequence[str]]
    interpreter: Layer
    wheels: Sequence[Wheel]


@dataclass(frozen=True, slots=True)
class Packer:
    """Compiles and packs layers."""

    interpreter: Interpreter
    compiler: Compiler

    def layer(self, title: str, files: Tree) -> Layer:
        """Return a layer of files and their compiled ones."""
        complete = self.compiler.with_compiled(files)
        archive = tree.archive(complete)
        compressed = self.interpreter.compress(archive)
        return Layer(title, layout.digest(archive), compressed, tree.size(complete))


def build(
    folder: Path,
    names: Sequence[str],
    architectures: Sequence[str],
    lock: Path = debian.LOCK,
    commit: str = "",
) -> Iterator[Built]:
    """Write a layout of each component below a folder.

    Args:
        folder: The folder of the layouts.
        names: The components.
        architectures: Debian's names of the architectures.
        lock: The lock of the Debian packages.
        commit: The commit of the sources, for the provenance. Empty for images without provenance.

    Raises:
        Failure: A package cannot be downloaded, or has files that images have no place for.
        CalledProcessError: pip, uv or the interpreter failed.
    """
    chosen = [components()[name] for name in names]
    locked = {name: debian.locked(name, lock) for name in {*architectures, machine()}}
    trees = {name: layers.interpreter(debian.fetch(packages).items()) for name, packages in locked.items()}
    ours = wheels.build(sorted({package for component in chosen for package in component.packages}))
    with unpacked(trees[machine()], machine()) as interpreter:
        packer = Packer(interpreter, Compiler(interpreter))
        machines = [
            Machine(
                name,
                {package: licences.of_package(package.name, trees[name]) for package in locked[name]},
                packer.layer("interpreter", trees[name]),
                wheels.download([component.lock for component in chosen], name),
            )
            for name in architectures
        ]
        for component in chosen:
            yield _write(folder / component.name, component, machines, ours, packer, commit)


def _write(
    folder: Path,
    component: Component,
    machines: Sequence[Machine],
    ours: Mapping[str, Wheel],
    packer: Packer,
    commit: str,
) -> Built:
    """Write the layout of a component."""
    own = [ours[package] for package in component.packages]
    code = packer.layer("kubefoundry", layers.own(own, component.program))
    blobs, images, referrers = Blobs({}), {}, []
    descriptors = []
    for target in machines:
        others = wheels.of_lock(target.wheels, component.lock)
        parts = (target.interpreter, packer.layer("dependencies", layers.dependencies(others)), code)
        image = Image(component.name, own[0].version, component.program, target.architecture, parts)
        descriptor = layout.add_image(blobs, image)
        content = sbom.document(image, descriptor["digest"], target.packages, [*others, *own])
        descriptors.append(descriptor)
        referrers.append(layout.add_document(blobs, layout.SBOM, content, descriptor))
        if commit:
            statement = provenance.statement(image, descriptor["digest"], commit, content)
            referrers.append(layout.add_document(blobs, layout.PROVENANCE, statement, descriptor))
        images[target.architecture] = image
    index = layout.add_index(blobs, image, [*descriptors, *referrers])
    layout.write(folder, blobs, index, image.version)
    return Built(
        component.name,
        index["digest"],
        {name: sum(part.size for part in image.layers) for name, image in images.items()},
        {name: sum(len(part.compressed) for part in image.layers) for name, image in images.items()},
    )
