"""Write provider images as folders with real wheels."""

from __future__ import annotations

import base64
import hashlib
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

Files = Mapping[str, str | bytes]

PROVIDER = """
from llama_stack_api import {api_class}
def get_provider_spec():
    return {api_class}(
        api="{api}", provider_type="{kind}", config_class="{package}.Config", module="{package}", {more}
    )
"""
IMPLEMENTATION = """
class Config:
    def __init__(self, **values):
        self.values = values
async def get_adapter_impl(config, deps): ...
async def get_provider_impl(config, deps): ...
"""


def wheel(
    folder: Path,
    name: str,
    version: str = "1.0.0",
    files: Files | None = None,
    *,
    requires: Sequence[str] = (),
    requires_python: str = "",
    tag: str = "py3-none-any",
    tag_inside: str = "",
) -> Path:
    """Write a wheel (PyPA "Binary distribution format" 1.0). `tag_inside` is another tag for the file WHEEL."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    about = [
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}",
        *(f"Requires-Dist: {requirement}" for requirement in requires),
    ]
    if requires_python:
        about.append(f"Requires-Python: {requires_python}")
    content: dict[str, str | bytes] = {
        **({f"{name.replace('-', '_')}.py": f"VERSION = {version!r}\n"} if files is None else files),
        f"{stem}.dist-info/METADATA": "\n".join(about) + "\n",
        f"{stem}.dist-info/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag_inside or tag}\n",
    }
    path = folder / f"{stem}-{tag}.whl"
    rows = []
    with zipfile.ZipFile(path, "w") as archive:
        for member, value in content.items():
            raw = value.encode() if isinstance(value, str) else value
            digest = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()
            rows.append(f"{member},sha256={digest},{len(raw)}\n")
            archive.writestr(zipfile.ZipInfo(member, (2020, 1, 1, 0, 0, 0)), raw)
        archive.writestr(f"{stem}.dist-info/RECORD", "".join(rows) + f"{stem}.dist-info/RECORD,,\n")
    return path


def provider_files(
    package: str, kind: str, api: str = "inference", extra: Files | None = None
) -> dict[str, str | bytes]:
    """Return the modules of a valid provider: spec, implementation functions and config class."""
    folder = package.replace(".", "/")
    api_class = "RemoteProviderSpec" if kind.startswith("remote") else "InlineProviderSpec"
    more = 'adapter_type="x"' if kind.startswith("remote") else ""
    spec = PROVIDER.format(api_class=api_class, api=api, kind=kind, package=package, more=more)
    return {f"{folder}/__init__.py": IMPLEMENTATION, f"{folder}/provider.py": spec, **(extra or {})}


def spec(**changes: Any) -> dict[str, Any]:
    """Return a valid lls-provider-spec.yaml with changes, as `spec__api="safety"`. None removes the field."""
    value: dict[str, Any] = {
        "apiVersion": "llamastack.io/v1alpha1",
        "kind": "ProviderPackage",
        "metadata": {"name": "acme-echo", "version": "1.0.0", "vendor": "acme"},
        "spec": {
            "packageName": "acme_echo",
            "providerType": "remote::acme-echo",
            "api": "inference",
            "wheelPath": "packages/acme_echo-1.0.0-py3-none-any.whl",
        },
    }
    for path, change in changes.items():
        *parents, last = path.split("__")
        place = value
        for key in parents:
            place = place[key]
        if change is None:
            del place[last]
        else:
            place[last] = change
    return value


def image(
    folder: Path,
    name: str = "acme-echo",
    *,
    package: str = "",
    api: str = "inference",
    kind: str = "",
    version: str = "1.0.0",
    requires: Sequence[str] = (),
    extra: Files | None = None,
    dependency_wheels: Sequence[str] | None = None,
) -> Path:
    """Write the content of a provider image at /lls-provider, and return its folder. Wheels are in `packages`."""
    package = package or name.replace("-", "_")
    kind = kind or f"remote::{name}"
    main = wheel(
        folder / "packages", name, version, provider_files(package, kind, api, extra), requires=requires
    )
    value = spec(
        metadata__name=name,
        metadata__version=version,
        spec__packageName=package,
        spec__providerType=kind,
        spec__api=api,
        spec__wheelPath=f"packages/{main.name}",
    )
    if dependency_wheels is not None:
        value["spec"]["dependencyWheels"] = list(dependency_wheels)
    write_spec(folder, value)
    return folder


def write_spec(folder: Path, value: dict[str, Any] | str) -> None:
    """Write lls-provider-spec.yaml of the image."""
    folder.mkdir(parents=True, exist_ok=True)
    text = value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=False)
    (folder / "lls-provider-spec.yaml").write_text(text)


def shared_object(machine: int) -> bytes:
    """Return the first bytes of a 64-bit little-endian ELF file for a processor (its e_machine)."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 3, machine) + bytes(44)
