"""The bytes of an archive depend on the files alone, and the parts of a layer are in their places."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Final

import pytest
from images import debian, layout, licences, wheels
from images.debian import ARCHITECTURES
from images.layout import Blobs
from images.tree import TIME, File, Folder, Link, Tree, archive

TREE: Final[Tree] = {
    "usr/bin/program": File(b"run", executable=True),
    "etc/passwd": File(b"root"),
    "tmp": Folder(0o1777),
    "var/run": Link("/run"),
    f"opt/{'long' * 40}/name": File(b""),
}


def test_archive_is_independent_of_the_order() -> None:
    assert archive(TREE) == archive(dict(reversed(list(TREE.items()))))


def test_archive_has_sorted_names_and_fixed_owners_and_times() -> None:
    with tarfile.open(fileobj=io.BytesIO(archive(TREE))) as tar:
        members = tar.getmembers()

    assert [member.name for member in members] == sorted(member.name for member in members)
    assert {(member.uid, member.gid, member.uname, member.mtime) for member in members} == {(0, 0, "", TIME)}
    modes = {member.name: oct(member.mode) for member in members}
    assert modes["usr/bin/program"] == "0o755"
    assert modes["etc/passwd"] == "0o644"
    assert modes["usr"] == "0o755"
    assert modes["tmp"] == "0o1777"


def test_blobs_are_stored_once_by_their_digest() -> None:
    blobs = Blobs({})

    first, second = (blobs.add(layout.CONFIG, {"b": 1, "a": [2]}) for _ in range(2))

    assert first == second
    assert blobs.contents == {first["digest"]: b'{"a":[2],"b":1}'}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_debian_lock_has_every_package(architecture: str) -> None:
    named = [line for line in debian.NAMES.read_text().splitlines() if not line.startswith("#")]

    assert [package.name for package in debian.locked(architecture)] == named


def test_missing_program_is_reported() -> None:
    with pytest.raises(debian.Failure, match="no package has the program kubefoundry-core"):
        wheels.program([], "kubefoundry-core")


def test_lost_debian_package_is_reported_with_the_remedy(tmp_path: Path) -> None:
    lost = debian.Package("amd64", "libc6", "1", "0" * 64, "pool/main/libc6_1.deb")

    with pytest.raises(debian.Failure, match=r"cannot download libc6 1 \(amd64\): .* run `make lock-debian`"):
        debian.download(lost, tmp_path.as_uri(), tmp_path / "libc6.deb")


def test_other_content_is_reported_without_that_remedy(tmp_path: Path) -> None:
    (tmp_path / "libc6_1.deb").write_bytes(b"another")
    package = debian.Package("amd64", "libc6", "1", "0" * 64, "libc6_1.deb")

    with pytest.raises(debian.Failure, match=r"cannot download libc6 1 \(amd64\): ") as failure:
        debian.download(package, tmp_path.as_uri(), tmp_path / "libc6.deb")

    assert "lock-debian" not in str(failure.value)
    assert not (tmp_path / "libc6.deb").exists()


def test_damaged_package_in_the_cache_is_downloaded_again(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"content").hexdigest()
    package = debian.Package("amd64", "libc6", "1", digest, "libc6_1.deb")
    (tmp_path / "libc6_1.deb").write_bytes(b"content")
    (tmp_path / f"{digest}.deb").write_bytes(b"damaged")

    files = debian.fetch([package], tmp_path, {"Debian": tmp_path.as_uri()})

    assert files[package].read_bytes() == b"content"


FORMAT: Final = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
FILES: Final = (
    "Files: *\nCopyright: 2001 A\nLicense: GPL-2+ or BSD-3-clause\n Text.\n\n"
    "Files: debian/*\nLicense: Expat\n\nLicense: Of no file\n Text.\n"
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (FORMAT + "\n" + FILES, ["Expat", "GPL-2+ or BSD-3-clause"]),
        ("This is the GNU C Library.\n\nLicense: see below\n", ["/usr/share/doc/libc6/copyright"]),
    ],
    ids=["machine-readable", "prose"],
)
def test_licences_are_read_from_the_copyright_file(text: str, names: list[str]) -> None:
    assert licences.of_package("libc6", {"usr/share/doc/libc6/copyright": File(text.encode())}) == names


def test_shared_copyright_file_is_followed() -> None:
    shared: Tree = {
        "usr/share/doc/libgcc-s1": Link("gcc-12-base"),
        "usr/share/doc/gcc-12-base/copyright": File((FORMAT + "\n" + FILES).encode()),
    }

    assert licences.of_package("libgcc-s1", shared) == ["Expat", "GPL-2+ or BSD-3-clause"]
