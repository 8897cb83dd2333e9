"""More hostile images: several variants of each kind of fault.

The faults are those that a vendor's build, a text editor or an attacker makes in metadata, wheels and archives.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from support.hostile_images import (
    GOOD,
    MAIN,
    Change,
    HostileImage,
    about,
    both,
    brings,
    edited,
    linked,
    raw,
    renamed,
    text,
)
from support.provider_images import shared_object
from support.provider_images import spec as metadata

Kinds = Mapping[str, Mapping[str, HostileImage]]

TEXT: Final = yaml.safe_dump(metadata(), sort_keys=False)
"""The metadata of a good image."""
ODD: Final[dict[str, Any]] = {
    "a number": 7,
    "a list": ["a"],
    "a mapping": {"a": "b"},
    "no text": "",
    "a truth": True,
    "missing": None,
}


def _fields() -> dict[str, HostileImage]:
    """Return an image for each field with a value of a wrong type. The types take turns."""
    fields = ["metadata__name", "metadata__version", "metadata__vendor", "spec__packageName"]
    fields += ["spec__providerType", "spec__api", "spec__wheelPath", "apiVersion", "kind", "metadata", "spec"]
    images = {}
    for index, field in enumerate(fields):
        type_name = list(ODD)[index % len(ODD)]
        path = field.replace("__", ".")
        images[f"{path} is {type_name}"] = HostileImage(
            text(**{field: ODD[type_name]}), "InvalidSpec", (path,)
        )
    return images


def encoded(name: str, *, bom: bytes = b"") -> Change:
    """Return a change that writes the metadata in another encoding."""
    return raw(bom + TEXT.encode(name))


def version(written: str) -> Change:
    """Return a change that writes metadata with another text for the version."""
    return raw(TEXT.replace("version: 1.0.0", f"version: {written}").encode())


def members(*extra: tuple[zipfile.ZipInfo, bytes]) -> Change:
    """Return a change that adds members to the main wheel, as no build tool would."""

    def change(content: bytes) -> bytes:
        buffer = io.BytesIO(content)
        with zipfile.ZipFile(buffer, "a") as archive:
            for member, value in extra:
                archive.writestr(member, value)
        return buffer.getvalue()

    return edited(change)


def member(name: str, mode: int = 0) -> zipfile.ZipInfo:
    """Return a member of an archive. Its mode has the type of the file."""
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def as_version(version: str) -> Change:
    """Return a change that writes another version into the name of the main wheel."""
    name = f"acme_echo-{version}-py3-none-any.whl"
    return both(renamed(name), text(spec__wheelPath=f"packages/{name}"))


def elf(change: Callable[[bytes], bytes], machine: int = 62) -> Change:
    """Return a change that adds native code with changed bytes."""
    return brings({"native/core.so": change(shared_object(machine))})


METADATA: Final = b"Metadata-Version: 2.1\nName: acme-echo\nVersion: 1.0.0\n"
NUMBER: Final = "9" * 6000

IMAGE_KINDS: Final[Kinds] = {
    "a field of another type": _fields(),
    "metadata in another encoding": {
        "UTF-16 with its mark": HostileImage(encoded("utf-16"), ""),
        "UTF-16 without its mark": HostileImage(encoded("utf-16-le"), "InvalidYaml"),
        "UTF-32": HostileImage(encoded("utf-32"), "InvalidYaml"),
        "UTF-8 with a mark": HostileImage(encoded("utf-8", bom=b"\xef\xbb\xbf"), ""),
        "UTF-7": HostileImage(raw(TEXT.encode("utf-7").replace(b"acme", b"+AGE-")), "InvalidSpec"),
        "Latin-1": HostileImage(
            raw(TEXT.replace("vendor: acme", "vendor: \xe4").encode("latin-1")), "InvalidYaml"
        ),
        "a NUL at the end": HostileImage(raw(TEXT.encode() + b"\0"), "InvalidYaml", ("line",)),
        "lines of an old Mac": HostileImage(raw(TEXT.replace("\n", "\r").encode()), ""),
    },
    "a value that YAML cannot hold": {
        "an integer of 6,000 digits": HostileImage(
            version(NUMBER),
            "InvalidYaml",
            ("line", "is not a valid int"),
        ),
        **{
            shown: HostileImage(version(value), "InvalidYaml", ("line", "is not a valid"))
            for shown, value in {
                "a truth that is none": "!!bool perhaps",
                "a date that is none": "!!timestamp soon",
                "a month 13": "2024-13-01",
                "an integer of 9,000 hexadecimal digits": "0x" + "f" * 9000,
                "an empty integer": '!!int ""',
                "an empty float": '!!float ""',
                "a float of words": "!!float many",
            }.items()
        },
        "a mapping merged into itself": HostileImage(
            raw(b"a: &a\n  <<: *a\n"), "InvalidYaml", ("contains itself",)
        ),
        "a list within itself": HostileImage(
            raw(GOOD + b"spec: &a [*a]\n"), "InvalidYaml", ("contains itself",)
        ),
        "a set": HostileImage(raw(GOOD + b"spec: !!set {a, b}\n"), "InvalidSpec", ("spec:",)),
        "bytes": HostileImage(raw(GOOD + b"spec: !!binary aGk=\n"), "InvalidSpec", ("spec:",)),
        "an anchor that is not there": HostileImage(raw(b"a: *b\n"), "InvalidYaml", ("line 1",)),
        "a directive of YAML 3": HostileImage(raw(b"%YAML 3.0\n---\n" + TEXT.encode()), "InvalidYaml"),
        "mappings 2,000 deep": HostileImage(
            raw(b"{a: " * 2000 + b"1" + b"}" * 2000), "InvalidYaml", ("deeply",)
        ),
    },
    "an archive that no builder writes": {
        "one name twice": HostileImage(
            members((member("acme_echo/a.py"), b"1"), (member("acme_echo/a.py"), b"2")), ""
        ),
        "a link to another file": HostileImage(
            members((member("acme_echo/link.py", stat.S_IFLNK | 0o777), b"/etc/passwd")), ""
        ),
        "a file that is a folder, too": HostileImage(
            members((member("acme_echo/a"), b"1"), (member("acme_echo/a/b.py"), b"2")),
            "BadWheel",
            ("acme_echo/a in it is a file",),
        ),
        "a program as prefix": HostileImage(edited(lambda content: b"#!/bin/sh\n" + content), ""),
        "a comment of 60,000 bytes": HostileImage(
            edited(lambda content: content[:-2] + struct.pack("<H", 60_000) + b"c" * 60_000), ""
        ),
        "64 MB of zeros": HostileImage(members((member("acme_echo/zeros"), bytes(64 * 2**20))), ""),
        "2,000 files": HostileImage(
            members(*((member(f"acme_echo/data/{at}"), b"") for at in range(2_000))),
            "",
        ),
        "a folder 60 deep": HostileImage(members((member("a/" * 60 + "b.py"), b"")), ""),
        "a folder 3,000 deep": HostileImage(
            members((member("a/" * 3000 + "b.py"), b"")), "BadWheel", ("longer",)
        ),
        "an empty name": HostileImage(members((member("/"), b"")), "BadWheel"),
        "a dot": HostileImage(members((member("."), b"")), "BadWheel"),
        "emoji": HostileImage(members((member("acme_echo/\U0001f389.py"), b"")), ""),
        "names that differ in case": HostileImage(
            members((member("acme_echo/A.py"), b""), (member("acme_echo/a.py"), b"")), ""
        ),
    },
    "a version that is none": {
        written: HostileImage(as_version(written), "BadWheel")
        for written in ("1.0.x", "", "1.0.0-0-0", "..", "1!", "v\u0661", "latest")
    },
    "tags that fit nowhere": {
        tag: HostileImage(
            both(
                renamed(f"acme_echo-1.0.0-{tag}.whl"),
                text(spec__wheelPath=f"packages/acme_echo-1.0.0-{tag}.whl"),
            ),
            "WrongPlatform",
        )
        for tag in (
            "cp27-none-any",
            "py3-none-win_amd64",
            "pp39-pypy39_pp73-any",
            "py3-abi9-any",
            "cp399-abi3-linux_x86_64",
            "py9-none-any",
        )
    },
    "METADATA that surprise": {
        "a Name of two lines": HostileImage(
            about("METADATA", b"Metadata-Version: 2.1\nName: acme\n -echo\nVersion: 1.0.0\n"), "BadWheel"
        ),
        "a version of 5,000 digits": HostileImage(
            about("METADATA", METADATA.replace(b"1.0.0", b"1" * 5000)), "BadWheel"
        ),
        "10,000 requirements": HostileImage(
            about("METADATA", METADATA + b"".join(b"Requires-Dist: a%d\n" % at for at in range(10_000))),
            "BadWheel",
            ("2000",),
        ),
        "extras that ask for extras": HostileImage(
            about(
                "METADATA",
                METADATA
                + b"".join(
                    b"Requires-Dist: acme-echo[e%d]; extra == 'e%d'\n" % (at, at + 1) for at in range(300)
                )
                + b"Requires-Dist: acme-echo[e300]\n",
            ),
            "",
        ),
        "a requirement by address": HostileImage(
            about("METADATA", METADATA + b"Requires-Dist: a @ file:///etc/passwd\n"), ""
        ),
        "a marker of 500 brackets": HostileImage(
            about(
                "METADATA",
                METADATA + b"Requires-Dist: a; " + b"(" * 500 + b"extra == 'x'" + b")" * 500 + b"\n",
            ),
            "",
        ),
        "a Python that nobody can read": HostileImage(
            about("METADATA", METADATA + b"Requires-Python: whatever\n"), ""
        ),
        "a Python of 5,000 digits": HostileImage(
            about("METADATA", METADATA + b"Requires-Python: >=" + b"3" * 5000 + b"\n"), "PipFailed"
        ),
        "headers without end": HostileImage(about("METADATA", METADATA + b"A" * 1_000_000 + b": b\n"), ""),
        "a charset that is none": HostileImage(
            about("METADATA", METADATA + b"Requires-Dist: =?nowhere?b?AAAA?=\n"), ""
        ),
    },
    "a RECORD that lies": {
        "nothing in it": HostileImage(about("RECORD", b""), ""),
        "other hashes": HostileImage(about("RECORD", b"acme_echo/provider.py,sha256=AAAA,1\n"), ""),
        "files upwards": HostileImage(about("RECORD", b"../../../etc/passwd,,\n"), ""),
        "no table": HostileImage(about("RECORD", b'"\n' * 50), ""),
        "no text": HostileImage(about("RECORD", b"\xff\xfe\n"), "PipFailed"),
    },
    "entry points that mean no good": {
        "a path": HostileImage(
            about("entry_points.txt", b"[console_scripts]\n../../../tmp/evil = acme_echo:Config\n"),
            "BadWheel",
            ("../../../tmp/evil",),
        ),
        "no function": HostileImage(
            about("entry_points.txt", b"[console_scripts]\nx = acme_echo\n"), "PipFailed"
        ),
        "no section": HostileImage(about("entry_points.txt", b"x = y\n"), ""),
        "no text": HostileImage(about("entry_points.txt", b"\xff\xfe"), "PipFailed"),
    },
    "data for other places": {
        "a scheme that nobody knows": HostileImage(brings({"more-1.0.0.data/etc/passwd": ""}), "PipFailed"),
        "data upwards": HostileImage(brings({"more-1.0.0.data/purelib/../../up.py": ""}), "BadWheel"),
        "data without a scheme": HostileImage(brings({"more-1.0.0.data/up.py": ""}), "PipFailed"),
        "a module of Python among native ones": HostileImage(
            brings({"more-1.0.0.data/platlib/ssl.py": ""}), "ModuleShadowed", ("ssl",)
        ),
        "a header": HostileImage(brings({"more-1.0.0.data/headers/a.h": ""}), ""),
    },
    "a module of Python": {
        path: HostileImage(brings({path: b""}), "ModuleShadowed", (path.split("/")[0].split(".")[0],))
        for path in (
            "re.py",
            "site.py",
            "_thread.py",
            "encodings/idna.py",
            "zipimport.pyc",
            "email/__init__.py",
            "this.so",
            "antigravity.cpython-313.pyc",
        )
    },
    "native code": {
        "32 bits": HostileImage(
            elf(lambda good: good[:4] + b"\x01" + good[5:]), "WrongArchitecture", ("32 bit",)
        ),
        "big endian": HostileImage(
            elf(lambda good: good[:5] + b"\x02" + good[6:]), "WrongArchitecture", ("big",)
        ),
        **{
            f"for processor {machine}": HostileImage(
                elf(bytes, machine), "WrongArchitecture", ("native/core.so",)
            )
            for machine in (3, 22, 40, 243, 65535)
        },
        "that is cut": HostileImage(elf(lambda good: good[:10]), ""),
        "that is a script": HostileImage(elf(lambda _: b"INPUT(libc.so)"), ""),
    },
    "a link": {
        "metadata to a file of the system": HostileImage(
            linked("lls-provider-spec.yaml", "/etc/hostname"), "InvalidSpec"
        ),
        "metadata to nothing": HostileImage(linked("lls-provider-spec.yaml", "gone"), "MissingSpec"),
        "a wheel to a device": HostileImage(linked(MAIN, "/dev/zero"), "PathOutside"),
        "a wheel to the system": HostileImage(linked(MAIN, "/etc/passwd"), "PathOutside"),
        "a wheel to nothing": HostileImage(linked(MAIN, "gone.whl"), "MissingWheel"),
        "a wheel to the metadata": HostileImage(linked(MAIN, "../lls-provider-spec.yaml"), "BadWheel"),
        "a wheel to a folder": HostileImage(linked(MAIN, "."), "MissingWheel"),
    },
    "a name in another script": {
        "emoji for a vendor": HostileImage(text(metadata__vendor="\U0001f389"), ""),
        "a type in Cyrillic": HostileImage(text(spec__providerType="remote::\u0430cme"), "InvalidSpec"),
        "text from right to left": HostileImage(text(metadata__vendor="a\u202eb"), "InvalidSpec"),
        "an API in full width": HostileImage(text(spec__api="\uff49nference"), "InvalidSpec"),
        "digits of another script": HostileImage(text(metadata__version="\u0661.0.0"), "InvalidSpec"),
    },
}

IMAGE_VARIANTS: Final = {
    f"{kind}: {name}": case for kind, cases in IMAGE_KINDS.items() for name, case in cases.items()
}
