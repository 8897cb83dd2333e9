"""Checks whether this interpreter can load a file, by wheel tags and the header of shared objects.

Imports nothing. Tags alone miss a wheel that claims to be `any` and has native code. The header alone misses
another Python or libc (sources §5.4).
"""

from __future__ import annotations

import functools
import math
import re
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.tags import Tag, parse_tag, sys_tags

HEADER_BYTES: Final = 20
_MOST_TAGS: Final = 1000
"""That one line may stand for: `a.b-c.d-e.f` are eight."""
_SHARED_OBJECT: Final = re.compile(r"\.so(\.\d+)*$")
_MACHINES: Final = {
    3: "x86",
    20: "ppc",
    21: "ppc64",
    22: "s390x",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}
"""e_machine of the ELF header (System V ABI, and its processor supplements)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The target of a shared object: bits 32 or 64, little or big, and the processor's number."""

    bits: int
    little: bool
    number: int

    def __str__(self) -> str:
        name = _MACHINES.get(self.number, f"processor {self.number}")
        return f"{name} ({self.bits} bit, {'little' if self.little else 'big'} endian)"


def is_shared_object(name: str) -> bool:
    """Check whether the file name is that of a shared object, such as `*.so`, `*.so.1.2` or `*.abi3.so`."""
    return _SHARED_OBJECT.search(name) is not None


def of_header(header: bytes) -> Machine | None:
    """Return the machine in the header of an ELF file.

    Args:
        header: The first HEADER_BYTES of the file.

    Returns:
        The machine, or None if it is not an ELF file (a linker script, say).
    """
    if len(header) < HEADER_BYTES or header[:4] != b"\x7fELF":
        return None
    little = header[5] == 1
    (number,) = struct.unpack_from("<H" if little else ">H", header, 18)
    return Machine(64 if header[4] == 2 else 32, little, number)


@functools.cache
def own_machine() -> Machine | None:
    """Return the running interpreter's machine.

    With emulation and 32-bit user lands the kernel's name is less exact.
    """
    return of_file(Path(sys.executable))


def of_file(path: Path) -> Machine | None:
    """Return the file's machine as `of_header` does.

    Raises:
        OSError: The file is not readable.
    """
    with path.open("rb") as file:
        return of_header(file.read(HEADER_BYTES))


def fits(built_for: Machine | None) -> bool:
    """Check whether this interpreter can load the file. A file that is not ELF is ignored."""
    return built_for is None or own_machine() is None or built_for == own_machine()


@functools.cache
def _supported() -> frozenset[Tag]:
    return frozenset(sys_tags())


def supports(tags: Iterable[Tag]) -> bool:
    """Check whether one of a wheel's tags fits this interpreter, its libc and processor."""
    return not _supported().isdisjoint(tags)


def parse(texts: Iterable[str]) -> frozenset[Tag]:
    """Return the tags in the `Tag:` lines of a WHEEL file. An invalid tag fits nothing and is left out."""
    tags: set[Tag] = set()
    for text in texts:
        parts = text.split("-")
        if len(parts) == 3 and math.prod(part.count(".") + 1 for part in parts) <= _MOST_TAGS:
            tags |= parse_tag(text)
    return frozenset(tags)


def describe_interpreter() -> str:
    """Describe this interpreter in a few words: `cp312 on manylinux_2_36_x86_64`."""
    best = next(iter(sys_tags()))
    return f"{best.interpreter} on {best.platform}"
