"""What this interpreter can run: wheel tags, and the header of shared objects. Nothing is imported for it.

Tags alone miss a wheel that calls itself `any` and holds native code; the header alone misses another Python or libc
(sources §5.4).
"""

from __future__ import annotations

import functools
import re
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.tags import Tag, parse_tag, sys_tags

HEADER_BYTES: Final = 20
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
    """For what a shared object is built: bits 32 or 64, little or big, and the processor's number."""

    bits: int
    little: bool
    number: int

    def __str__(self) -> str:
        name = _MACHINES.get(self.number, f"processor {self.number}")
        return f"{name} ({self.bits} bit, {'little' if self.little else 'big'} endian)"


def is_shared_object(name: str) -> bool:
    """By file name: `*.so`, `*.so.1.2`; `*.abi3.so` is one of them."""
    return _SHARED_OBJECT.search(name) is not None


def of_header(header: bytes) -> Machine | None:
    """The machine of the first HEADER_BYTES of a file; None where it is no ELF file (a linker script, say)."""
    if len(header) < HEADER_BYTES or header[:4] != b"\x7fELF":
        return None
    little = header[5] == 1
    (number,) = struct.unpack_from("<H" if little else ">H", header, 18)
    return Machine(64 if header[4] == 2 else 32, little, number)


@functools.cache
def ours() -> Machine | None:
    """That of the running interpreter: with emulation and 32-bit user lands the kernel's name says less."""
    return of_file(Path(sys.executable))


def of_file(path: Path) -> Machine | None:
    """As of_header. Raises OSError."""
    with path.open("rb") as file:
        return of_header(file.read(HEADER_BYTES))


def fits(found: Machine | None) -> bool:
    """Whether this interpreter can load it; what is no ELF file is nobody's concern here."""
    return found is None or ours() is None or found == ours()


@functools.cache
def _supported() -> frozenset[Tag]:
    return frozenset(sys_tags())


def supports(tags: Iterable[Tag]) -> bool:
    """Whether one of a wheel's tags fits this interpreter, its libc and processor."""
    return not _supported().isdisjoint(tags)


def parse(texts: Iterable[str]) -> frozenset[Tag]:
    """The tags of the `Tag:` lines of a WHEEL file; what is no tag fits nothing and is left out."""
    found: set[Tag] = set()
    for text in texts:
        if text.count("-") == 2:
            found |= parse_tag(text)
    return frozenset(found)


def here() -> str:
    """This interpreter in a few words: `cp312 on manylinux_2_36_x86_64`."""
    best = next(iter(sys_tags()))
    return f"{best.interpreter} on {best.platform}"
