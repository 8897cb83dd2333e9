"""Distribution images of several releases of llama-stack, and of OGX, its successor: Python 3.13, a layer each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kubefoundry_nodes.images import environment, layer
from kubefoundry_nodes.kubelet.image import Image
from llamastack_providers.layout import SPEC_FILE
from pods.images import distribution, provider

PORTABLE: Final = "example.com/acme-portable:0.1.0"
"""The image of examples/llamastack/acme-portable."""


@dataclass(frozen=True, slots=True)
class Release:
    """package: what PyPI calls it. chat: path of its chat completions."""

    package: str
    version: str
    chat: str = "/v1/chat/completions"

    @property
    def name(self) -> str:
        return f"{self.package} {self.version}"

    @property
    def lock(self) -> Path:
        own = environment.LOCKS / "releases" / f"{self.package}-{self.version}.txt"
        return own if own.exists() else distribution.LOCK

    @property
    def environment(self) -> Path:
        """Its layer, made once for each content of its lock. Raises CalledProcessError, RuntimeError."""
        return environment.layer(self.lock, distribution.HOME)

    def image(self, folder: Path) -> Image:
        """With an empty configuration where Open Data Hub's images have theirs. folder: for a layer of its own."""
        own = layer.write(folder, {f"{distribution.HOME}/run.yaml": b""})
        name = f"example.com/{self.package}:{self.version}"
        return replace(distribution.of(name, self.environment, own), workdir="/tmp")


RELEASES: Final = (
    Release("llama-stack", "0.2.12"),
    Release("llama-stack", "0.2.23", chat="/v1/openai/v1/chat/completions"),
    Release("llama-stack", "0.3.5"),
    Release("llama-stack", "0.5.2"),
    Release("llama-stack", "0.6.1"),
    Release("llama-stack", "0.7.3"),
    Release("ogx", "1.5.0"),
)


def portable(work: Path) -> Image:
    """PORTABLE, built from its sources. Raises RuntimeError."""
    files = provider.example("acme-portable")
    [wheel] = provider.wheels([files], work)
    return provider.image(PORTABLE, work / "image", files[SPEC_FILE], [wheel])


if __name__ == "__main__":
    # what needs the network, before the pods' own is entered
    for release in RELEASES:
        print(f"{release.name}: {release.environment}", flush=True)
