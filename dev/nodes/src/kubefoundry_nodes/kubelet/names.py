"""Names of Services, in files that replace /etc/hosts. They are renamed into place, so no reader sees half a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FILE: Final = "hosts"
DOMAIN: Final = "cluster.local"

ServiceAddresses = Mapping[tuple[str, str], tuple[str, ...]]
"""Addresses of a Service's name, by namespace and name."""


@dataclass(slots=True)
class Names:
    """Keeps the file `hosts` of several folders up to date."""

    _readers: dict[Path, tuple[str, str]] = field(default_factory=dict)
    _services: ServiceAddresses = field(default_factory=dict)

    def add(self, folder: Path, namespace: str, own: str = "") -> None:
        """Add a folder. Services of `namespace` get short names, `own` is a line for the reader itself."""
        folder.mkdir(parents=True, exist_ok=True)
        self._readers[folder] = namespace, own
        self._write(folder)

    def remove(self, folder: Path) -> None:
        """Stop updating a folder."""
        self._readers.pop(folder, None)

    def update(self, services: ServiceAddresses) -> None:
        """Write the files if addresses have changed."""
        if services != self._services:
            self._services = services
            for folder in self._readers:
                self._write(folder)

    def _write(self, folder: Path) -> None:
        namespace, own = self._readers[folder]
        new = folder / f".{FILE}"
        new.write_text(text(self._services, namespace, own))
        new.chmod(0o644)
        new.rename(folder / FILE)


def text(services: ServiceAddresses, namespace: str, own: str) -> str:
    """Return the content of a hosts file."""
    lines = ["127.0.0.1 localhost", *([own] if own else [])]
    for (service_namespace, name), addresses in sorted(services.items()):
        hosts = " ".join(_names(name, service_namespace, short=service_namespace == namespace))
        lines += [f"{address} {hosts}" for address in addresses]
    return "\n".join(lines) + "\n"


def _names(name: str, namespace: str, *, short: bool) -> Iterable[str]:
    full = f"{name}.{namespace}"
    return (*((name,) if short else ()), full, f"{full}.svc", f"{full}.svc.{DOMAIN}")
