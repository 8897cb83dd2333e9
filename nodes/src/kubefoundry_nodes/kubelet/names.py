"""Names of Services, in files that replace /etc/hosts and are swapped atomically: no reader sees half of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FILE: Final = "hosts"
DOMAIN: Final = "cluster.local"

ServiceAddresses = Mapping[tuple[str, str], tuple[str, ...]]
"""Addresses behind the name of a Service, by namespace and name."""


@dataclass(slots=True)
class Names:
    """Folders in which the file `hosts` follows the Services."""

    _readers: dict[Path, tuple[str, str]] = field(default_factory=dict)
    _services: ServiceAddresses = field(default_factory=dict)

    def add(self, folder: Path, namespace: str, own: str = "") -> None:
        """namespace: whose Services have short names there. own: a line for the reader itself."""
        folder.mkdir(parents=True, exist_ok=True)
        self._readers[folder] = namespace, own
        self._write(folder)

    def remove(self, folder: Path) -> None:
        self._readers.pop(folder, None)

    def update(self, services: ServiceAddresses) -> None:
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
    """What the file holds."""
    lines = ["127.0.0.1 localhost", *([own] if own else [])]
    for (place, name), found in sorted(services.items()):
        known = _names(name, place, short=place == namespace)
        lines += [f"{address} {' '.join(known)}" for address in found]
    return "\n".join(lines) + "\n"


def _names(name: str, namespace: str, *, short: bool) -> Iterable[str]:
    full = f"{name}.{namespace}"
    return (*((name,) if short else ()), full, f"{full}.svc", f"{full}.svc.{DOMAIN}")
