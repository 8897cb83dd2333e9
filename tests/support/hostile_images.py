"""Hostile provider images, each with the code that refuses it."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.provider_images import spec, wheel, write_spec

Change = Callable[[Path], object]
MAIN: Final = "packages/acme_echo-1.0.0-py3-none-any.whl"
ABOUT: Final = "acme_echo-1.0.0.dist-info"


@dataclass(frozen=True, slots=True)
class HostileImage:
    """A hostile image.

    Attributes:
        change: Changes the folder of a valid image.
        code: The code of the refusal, empty if the image is harmless.
        words: Parts of the message.
    """

    change: Change
    code: str
    words: tuple[str, ...] = ()


def text(**changes: object) -> Change:
    """Return a change that writes metadata with other fields."""
    return lambda folder: write_spec(folder, spec(**changes))


def raw(content: bytes) -> Change:
    """Return a change that writes these bytes as metadata."""
    return lambda folder: (folder / "lls-provider-spec.yaml").write_bytes(content)


def brings(files: Mapping[str, str | bytes]) -> Change:
    """Return a change that adds a wheel with these files."""
    return lambda folder: wheel(folder / "packages", "more", files=files)


def edited(change: Callable[[bytes], bytes]) -> Change:
    """Return a change of the main wheel's bytes."""
    return lambda folder: (folder / MAIN).write_bytes(change((folder / MAIN).read_bytes()))


def rewritten(change: Callable[[dict[str, bytes]], object]) -> Change:
    """Return a change of the main wheel's files, which are contents by name in their order."""

    def rewrite(content: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        change(files)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, value in files.items():
                archive.writestr(zipfile.ZipInfo(name), value)
        return buffer.getvalue()

    return edited(rewrite)


def named(before: bytes, after: bytes) -> Change:
    """Return a change that adds a wheel with a file name that no library writes, of the same length."""
    assert len(before) == len(after)

    def change(folder: Path) -> None:
        path = wheel(folder / "packages", "more", files={before.decode(): ""})
        path.write_bytes(path.read_bytes().replace(before, after))

    return change


def encrypted(content: bytes) -> bytes:
    """Set the encryption flag (bit 0) of every file, in both of its headers."""
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        parts = content.split(mark)
        content = mark.join(
            [
                parts[0],
                *(part[: place - 4] + bytes([part[place - 4] | 1]) + part[place - 3 :] for part in parts[1:]),
            ]
        )
    return content


def flipped(content: bytes) -> bytes:
    """Change the content of a module, so that its checksum is wrong."""
    return content.replace(b"class Config", b"class C0nfig", 1)


def renamed(name: str | bytes) -> Change:
    """Return a change that renames the main wheel."""

    def change(folder: Path) -> None:
        (folder / MAIN).rename(folder / "packages" / os.fsdecode(name))

    return change


def linked(path: str, target: str) -> Change:
    """Return a change that replaces a file by a symbolic link."""

    def change(folder: Path) -> None:
        place = folder / path
        place.unlink(missing_ok=True)
        place.symlink_to(target)

    return change


def pipe(path: str) -> Change:
    """Return a change that replaces a file by a named pipe."""

    def change(folder: Path) -> None:
        (folder / path).unlink(missing_ok=True)
        os.mkfifo(folder / path)

    return change


def packages_in_a_loop(folder: Path) -> None:
    """Replace the folder of wheels by a link to itself."""
    (folder / MAIN).unlink()
    (folder / "packages").rmdir()
    (folder / "packages").symlink_to("packages")


def metadata_as_a_folder(folder: Path) -> None:
    """Replace the metadata by a folder."""
    (folder / "lls-provider-spec.yaml").unlink()
    (folder / "lls-provider-spec.yaml").mkdir()


def both(*changes: Change) -> Change:
    """Return a change that does all the changes."""
    return lambda folder: [change(folder) for change in changes]


def without(name: str) -> Change:
    """Return a change that removes a file of the main wheel's .dist-info."""
    return rewritten(lambda files: files.pop(f"{ABOUT}/{name}"))


def about(name: str, content: bytes) -> Change:
    """Return a change that replaces a file of the main wheel's .dist-info."""
    return rewritten(lambda files: files.update({f"{ABOUT}/{name}": content}))


BOMB: Final = b"a: &a [x, x, x, x, x, x, x, x, x, x]\n" + b"".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n".encode() for n in range(9)
)
GOOD: Final = (
    b"apiVersion: llamastack.io/v1alpha1\nkind: ProviderPackage\n"
    b"metadata: {name: a, version: 1.0.0, vendor: b}\n"
)

FILES: Final[dict[str, HostileImage]] = {
    "NUL in wheelPath": HostileImage(
        text(spec__wheelPath="packages/a\0.whl"), "InvalidSpec", ("spec.wheelPath",)
    ),
    "NUL in dependencyWheels": HostileImage(text(spec__dependencyWheels=["a\0"]), "InvalidSpec"),
    "a newline in wheelPath": HostileImage(text(spec__wheelPath="packages/a\n.whl"), "InvalidSpec"),
    "a bell in the name": HostileImage(text(metadata__name="a\x07b"), "InvalidSpec", ("metadata.name",)),
    "a surrogate in the vendor": HostileImage(
        raw(GOOD.replace(b"vendor: b", b'vendor: "\\ud800"') + b"spec: {}\n"),
        "InvalidSpec",
        ("metadata.vendor",),
    ),
    "a wheelPath that is too long": HostileImage(text(spec__wheelPath="a" * 5000), "InvalidSpec", ("5000",)),
    "a wheelPath with a name that is too long": HostileImage(text(spec__wheelPath="a" * 300), "MissingWheel"),
    "a wheelPath to a folder": HostileImage(text(spec__wheelPath="packages"), "MissingWheel"),
    "a wheelPath through a file": HostileImage(text(spec__wheelPath=f"{MAIN}/x.whl"), "MissingWheel"),
    "a wheelPath to nothing": HostileImage(text(spec__wheelPath="."), "MissingWheel"),
    "a loop of links": HostileImage(
        linked(MAIN, "acme_echo-1.0.0-py3-none-any.whl"), "MissingWheel", ("loop",)
    ),
    "two links in a loop": HostileImage(
        both(linked("packages/a.whl", "b.whl"), linked("packages/b.whl", "a.whl")), "MissingWheel"
    ),
    "a loop for packages": HostileImage(
        packages_in_a_loop,
        "NoPackages",
    ),
    "metadata in a loop": HostileImage(
        linked("lls-provider-spec.yaml", "lls-provider-spec.yaml"), "InvalidSpec", ("cannot be opened",)
    ),
    "metadata that never end": HostileImage(
        linked("lls-provider-spec.yaml", "/dev/zero"), "InvalidSpec", ("device",)
    ),
    "metadata that are a pipe": HostileImage(pipe("lls-provider-spec.yaml"), "InvalidSpec", ("pipe",)),
    "metadata that are a folder": HostileImage(
        metadata_as_a_folder,
        "InvalidSpec",
    ),
    "metadata of a megabyte": HostileImage(raw(b"# " + b"x" * 1_000_000), "InvalidSpec", ("1000002 bytes",)),
    "a bomb of aliases": HostileImage(raw(BOMB + b"apiVersion: *j\n"), "InvalidYaml", ("aliases",)),
    "brackets without end": HostileImage(raw(b"[" * 100_000), "InvalidYaml"),
    "a tag that makes objects": HostileImage(raw(b"!!python/object/apply:os.system [id]\n"), "InvalidYaml"),
    "a date that is none": HostileImage(
        raw(GOOD.replace(b"vendor: b", b"vendor: 2024-99-99")), "InvalidYaml"
    ),
    "two documents": HostileImage(raw(GOOD + b"---\n" + GOOD), "InvalidYaml"),
    "a list": HostileImage(raw(b"- a\n"), "InvalidSpec", ("must contain a mapping",)),
    "nothing": HostileImage(raw(b""), "InvalidSpec"),
    "a key that is a list": HostileImage(raw(b"? [a]\n: b\n"), "InvalidYaml"),
    "a packageName that is a keyword": HostileImage(text(spec__packageName="import"), "InvalidSpec"),
    "a packageName upwards": HostileImage(text(spec__packageName="..acme"), "InvalidSpec"),
    "a providerType in two lines": HostileImage(text(spec__providerType="remote::a\nb"), "InvalidSpec"),
    "a pipe for a wheel": HostileImage(pipe("packages/more-1.0.0-py3-none-any.whl"), "MissingWheel"),
    "a folder for a wheel": HostileImage(
        lambda folder: (folder / "packages" / "more-1.0.0-py3-none-any.whl").mkdir(), "MissingWheel"
    ),
    "a wheel whose name is no UTF-8": HostileImage(renamed(b"acme-\xff-py3-none-any.whl"), "MissingWheel"),
    "another wheel whose name is no UTF-8": HostileImage(
        lambda folder: Path(
            os.fsdecode(os.fsencode(folder / "packages") + b"/m\xff-1-py3-none-any.whl")
        ).touch(),
        "BadWheel",
        ("ASCII",),
    ),
    "a wheel with a name in letters that look alike": HostileImage(
        lambda folder: (folder / "packages" / "acme_\u0435cho-1.0.0-py3-none-any.whl").touch(), "BadWheel"
    ),
}

WHEELS: Final[dict[str, HostileImage]] = {
    "encrypted": HostileImage(edited(encrypted), "BadWheel", ("encrypted",)),
    "other contents than its checksums": HostileImage(edited(flipped), "BadWheel", ("damaged", "acme_echo")),
    "cut in the middle": HostileImage(edited(lambda content: content[: len(content) // 2]), "BadWheel"),
    "cut by a byte": HostileImage(edited(lambda content: content[:-1]), "BadWheel"),
    "empty": HostileImage(edited(lambda _: b""), "BadWheel"),
    "nothing but an end": HostileImage(
        edited(lambda _: b"PK\x05\x06" + bytes(18)), "BadWheel", (".dist-info",)
    ),
    "a directory that points nowhere": HostileImage(
        edited(lambda content: content[:-6] + struct.pack("<I", 2**31) + content[-2:]), "BadWheel"
    ),
    "an unknown compression": HostileImage(
        edited(
            lambda content: content.replace(
                b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x63"
            )
        ),
        "BadWheel",
    ),
    "a file upwards": HostileImage(brings({"../up.py": ""}), "BadWheel", ("points outside",)),
    "a file at an absolute place": HostileImage(brings({"/etc/up.py": ""}), "BadWheel", ("points outside",)),
    "a file of Windows": HostileImage(brings({"C:/up.py": ""}), "BadWheel", ("points outside",)),
    "a name that is no UTF-8": HostileImage(named(b"more_x.py", b"more_\xff.py"), "BadWheel", ("UTF-8",)),
    "a name with a newline": HostileImage(named(b"more_x.py", b"more_\n.py"), "BadWheel", ("characters",)),
    "a name with NUL": HostileImage(named(b"more_x.py", b"more_\0.py"), "BadWheel", ("characters",)),
    "a name with a backslash": HostileImage(named(b"more_x.py", b"more\\x.py"), "BadWheel", ("characters",)),
    "a name of 300 letters": HostileImage(brings({f"{'a' * 300}.py": ""}), "BadWheel", ("255",)),
    "no METADATA": HostileImage(without("METADATA"), "BadWheel", ("METADATA",)),
    "no WHEEL": HostileImage(without("WHEEL"), "BadWheel", ("WHEEL",)),
    "no RECORD": HostileImage(without("RECORD"), "BadWheel", ("RECORD",)),
    "a WHEEL of the future": HostileImage(
        about("WHEEL", b"Wheel-Version: 9.0\n"), "BadWheel", ("Wheel-Version",)
    ),
    "a WHEEL that says nothing": HostileImage(about("WHEEL", b"\xff\xfe"), "BadWheel", ("Wheel-Version",)),
    "METADATA of another package": HostileImage(
        about("METADATA", b"Metadata-Version: 2.1\nName: other\nVersion: 1.0.0\n"), "BadWheel", ("other",)
    ),
    "METADATA of another version": HostileImage(
        about("METADATA", b"Metadata-Version: 2.1\nName: acme-echo\nVersion: 2.0.0\n"), "BadWheel", ("2.0.0",)
    ),
    "METADATA without a version": HostileImage(about("METADATA", b"Name: acme-echo\n"), "BadWheel"),
    "METADATA that are no text": HostileImage(about("METADATA", b"\xff" * 100), "BadWheel"),
    "two .dist-info folders": HostileImage(
        rewritten(lambda files: files.update({"other-1.0.dist-info/METADATA": b""})),
        "BadWheel",
        ("other-1.0",),
    ),
    "the name of another package": HostileImage(
        both(
            renamed("other-1.0.0-py3-none-any.whl"),
            text(spec__wheelPath="packages/other-1.0.0-py3-none-any.whl"),
        ),
        "BadWheel",
        ("unlike its file name",),
    ),
    "a requirement that nobody can read": HostileImage(
        about("METADATA", b"Metadata-Version: 2.1\nName: acme-echo\nVersion: 1.0.0\nRequires-Dist: =\n"), ""
    ),
    "json.py": HostileImage(brings({"json.py": ""}), "ModuleShadowed", ("json.py", "Python has itself")),
    "sitecustomize.py": HostileImage(brings({"sitecustomize.py": ""}), "ModuleShadowed", ("starts with",)),
    "json.py by way of its data": HostileImage(
        brings({"more-1.0.0.data/purelib/json.py": ""}), "ModuleShadowed", ("json.py",)
    ),
    "asyncio/ with native code": HostileImage(
        brings({"asyncio/core.so": b"x"}), "ModuleShadowed", ("asyncio",)
    ),
}
IMAGES: Final = {**FILES, **{f"a wheel with {name}": case for name, case in WHEELS.items()}}
