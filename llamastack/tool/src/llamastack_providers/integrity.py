"""Checks that a wheel is intact and that its content matches its name. Unpacks nothing."""

from __future__ import annotations

import email.parser
import re
import zipfile
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.utils import canonicalize_name
from packaging.version import Version

from llamastack_providers.errors import Code, Failure

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_ENCRYPTED: Final = 0x1
"""General purpose bit 0 (PKWARE APPNOTE 4.4.4)."""
_UTF8: Final = 0x800
"""Bit 11: the name is UTF-8."""
_LONGEST: Final = 2048
"""Bytes of a path below the providers' tree: half of Linux' PATH_MAX."""
_ENTRY_POINT: Final = re.compile(r"^[^\S\n]*([^\[#;=:\n]*?[/\\][^=:\n]*?)[^\S\n]*[=:]", re.MULTILINE)
"""A line of entry_points.txt whose name is a path: pip would write a program there."""


def broken(path: Path) -> str:
    """Read the whole archive, and describe the first file that cannot be unpacked. Empty if all can."""
    try:
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
        return f"{bad} does not have the content that the archive states" if bad else ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def refused_member(archive: zipfile.ZipFile) -> str:
    """Describe why one of the archive's files cannot be installed anywhere. Empty if all can."""
    names = {member.filename for member in archive.infolist()}
    for member in archive.infolist():
        name = member.filename
        shown = ascii(name)[1:-1]
        if not member.flag_bits & _UTF8 and not member.orig_filename.isascii():
            return f"the name of the file {shown} in it is not UTF-8"
        if _UNPRINTABLE.search(member.orig_filename):
            return f"the name of the file {shown} in it has characters that are not allowed in names"
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or ":" in parts.parts[0]:
            return f"the file {shown} in it points outside the folder it is installed into"
        if any(len(part.encode()) > 255 for part in parts.parts):
            return f"the name of the file {shown[:60]}... in it is longer than 255 bytes"
        if len(name.encode()) > _LONGEST:
            return f"the path of the file {shown[:60]}... in it is longer than {_LONGEST} bytes"
        if both := names.intersection(map(str, parts.parents)):
            return f"{ascii(both.pop())[1:-1]} in it is a file, but {shown} needs a folder there"
        if member.flag_bits & _ENCRYPTED:
            return f"the file {shown} in it is encrypted"
    return ""


def metadata(archive: zipfile.ZipFile, name: str, version: Version) -> Message:
    """Return the wheel's METADATA.

    Raises:
        Failure: BadWheel, if the wheel does not match its file name, or has no such file.
    """
    wheel = Path(archive.filename or "").name
    folders = {
        member.partition("/")[0]
        for member in archive.namelist()
        if member.partition("/")[0].endswith(".dist-info")
    }
    if len(folders) != 1:
        listed = ", ".join(sorted(folders)) or "no .dist-info folder"
        raise Failure(Code.BadWheel, f"{wheel}: it contains {listed}; it must contain exactly one")
    [folder] = folders
    for part in ("METADATA", "WHEEL", "RECORD"):
        if f"{folder}/{part}" not in archive.namelist():
            raise Failure(Code.BadWheel, f"{wheel}: it contains no {folder}/{part}")
    if f"{folder}/entry_points.txt" in archive.namelist():
        entries = archive.read(f"{folder}/entry_points.txt").decode(errors="replace")
        if bad_entry := _ENTRY_POINT.search(entries):
            text = f"the program {ascii(bad_entry[1])[1:-1][:80]} in {folder}/entry_points.txt has a path for a name"
            raise Failure(Code.BadWheel, f"{wheel}: {text}")
    about = email.parser.BytesParser().parsebytes(archive.read(f"{folder}/METADATA"), headersonly=True)
    metadata_name, metadata_version = str(about.get("Name", "")), str(about.get("Version", ""))
    try:
        is_matching = canonicalize_name(metadata_name) == name and Version(metadata_version) == version
        is_matching = (
            is_matching and canonicalize_name(folder.removesuffix(".dist-info").rpartition("-")[0]) == name
        )
    except ValueError:
        is_matching = False
    if not is_matching:
        mismatch = (
            f"its metadata ({folder}) says {metadata_name[:80]} {metadata_version[:80]}, unlike its file name"
        )
        raise Failure(Code.BadWheel, f"{wheel}: {mismatch}")
    form = email.parser.BytesParser().parsebytes(archive.read(f"{folder}/WHEEL"), headersonly=True)
    if not str(form.get("Wheel-Version", "")).startswith("1."):
        raise Failure(Code.BadWheel, f"{wheel}: {folder}/WHEEL names no Wheel-Version 1")
    return about
