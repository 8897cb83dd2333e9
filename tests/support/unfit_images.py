"""Images with common mistakes, and the message that their user gets."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from support.hostile_images import MAIN, Change, HostileImage, text
from support.provider_images import shared_object, wheel, write_spec


def replaced(path: str, content: bytes) -> Change:
    """Return a change that replaces a file."""
    return lambda folder: (folder / path).write_bytes(content)


def empty_packages(folder: Path) -> None:
    """Remove all wheels."""
    for path in (folder / "packages").iterdir():
        path.unlink()


def no_packages(folder: Path) -> None:
    """Remove the folder of wheels."""
    empty_packages(folder)
    (folder / "packages").rmdir()


def link_out(folder: Path) -> None:
    """Add a link to a wheel outside the image."""
    outside = wheel(folder.parent / "outside", "outside")
    (folder / "packages" / outside.name).symlink_to(outside)


def link_to_root(folder: Path) -> None:
    """Replace the main wheel by a link to a wheel outside the image."""
    outside = wheel(folder.parent / "outside", "acme-echo")
    (folder / "packages" / outside.name).unlink()
    (folder / "packages" / outside.name).symlink_to(outside)


def foreign_object(folder: Path) -> None:
    """Add a wheel for any processor with native code for one."""
    wheel(folder / "packages", "native", files={"native/core.abi3.so": shared_object(machine=8)})


UNFIT: Final = {
    "no metadata": HostileImage(
        lambda folder: (folder / "lls-provider-spec.yaml").unlink(),
        "MissingSpec",
        ("Missing /lls-provider/lls-provider-spec.yaml in image images/echo:1",),
    ),
    "broken YAML": HostileImage(
        lambda folder: write_spec(
            folder, "apiVersion: llamastack.io/v1alpha1\nkind: [ProviderPackage\nmetadata: {}\n"
        ),
        "InvalidYaml",
        ("/lls-provider/lls-provider-spec.yaml at line 3, column 9",),
    ),
    "a tab in YAML": HostileImage(
        lambda folder: write_spec(folder, "kind: ProviderPackage\nmetadata:\n\tname: x\n"),
        "InvalidYaml",
        ("at line 3, column 1",),
    ),
    "bytes that are no text": HostileImage(
        replaced("lls-provider-spec.yaml", b"kind: a\nx: \xff\n"), "InvalidYaml", ("line 2",)
    ),
    "another API": HostileImage(
        text(spec__api="vector_io"),
        "ApiMismatch",
        (
            "ERROR: Provider API type mismatch\n",
            "Provider 'my-echo' (image: images/echo:1)\ndeclares api=vector_io in lls-provider-spec.yaml\n"
            "but is placed under externalProviders.inference",
            "Resolution: Move the provider to externalProviders.vectorIo section in the LLSD spec.",
        ),
    ),
    "no packages folder": HostileImage(no_packages, "NoPackages", ("has no folder /lls-provider/packages/",)),
    "no wheel": HostileImage(empty_packages, "NoPackages", ("no *.whl file in /lls-provider/packages/",)),
    "a main wheel that is missing": HostileImage(
        text(spec__wheelPath="packages/none-1-py3-none-any.whl"), "MissingWheel", ("spec.wheelPath",)
    ),
    "a dependency that is missing": HostileImage(
        text(spec__dependencyWheels=["packages/none-1-py3-none-any.whl"]),
        "MissingWheel",
        ("spec.dependencyWheels",),
    ),
    "a path upwards": HostileImage(text(spec__wheelPath="../etc/passwd"), "PathOutside", ("../etc/passwd",)),
    "an absolute path": HostileImage(
        text(spec__wheelPath="/etc/passwd"), "PathOutside", ("not below /lls-provider",)
    ),
    "a path upwards in disguise": HostileImage(
        text(spec__wheelPath="/lls-provider/packages/../../etc/passwd"), "PathOutside", ("points to",)
    ),
    "a link out of the folder": HostileImage(link_out, "PathOutside", ("outside-1.0.0",)),
    "a main wheel behind a link": HostileImage(link_to_root, "PathOutside", ("spec.wheelPath",)),
    "a wheel that is no archive": HostileImage(
        replaced(MAIN, b"no archive"), "BadWheel", ("acme_echo-1.0.0",)
    ),
    "a wheel with a name that is none": HostileImage(
        replaced("packages/nonsense.whl", b""), "BadWheel", ("nonsense.whl",)
    ),
    "two versions of one package": HostileImage(
        lambda folder: wheel(folder / "packages", "acme-echo", "2.0.0"), "DuplicateWheel", ("acme-echo",)
    ),
    "a wheel for another processor": HostileImage(
        lambda folder: wheel(folder / "packages", "native", tag="cp312-cp312-manylinux_2_17_riscv64"),
        "WrongPlatform",
        ("riscv64", "this container's Python"),
    ),
    "a wheel for another Python": HostileImage(
        lambda folder: wheel(folder / "packages", "native", tag="cp27-cp27m-any"), "WrongPlatform", ("cp27",)
    ),
    "native code of another processor in a wheel for any": HostileImage(
        foreign_object, "WrongArchitecture", ("native/core.abi3.so", "processor 8")
    ),
    "a Python that is too old": HostileImage(
        lambda folder: wheel(folder / "packages", "later", requires_python=">=4"), "PythonTooOld", (">=4",)
    ),
    "a conflict inside the image": HostileImage(
        lambda folder: (
            wheel(folder / "packages", "left", requires=["right>=2"]),
            wheel(folder / "packages", "right", "1.0"),
        ),
        "DependencyConflict",
        ("left 1.0.0 of this image requires right>=2", "right 1.0 of this image"),
    ),
}
