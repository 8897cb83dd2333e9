"""The distribution image: llama-stack 0.7.3 on Python 3.13, laid out as Open Data Hub's (sources §5.3)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubefoundry_nodes.images import environment, layer
from kubefoundry_nodes.kubelet.image import Image

HOME: Final = "/opt/app-root"
NAME: Final = "example.com/distribution:0.7.3"
BARE: Final = "example.com/distribution-without-configuration:0.7.3"
LOCK: Final = environment.LOCKS / "llama-stack.txt"


def image(folder: Path) -> Image:
    """With a run.yaml where Open Data Hub's images have it. folder: for a layer of its own."""
    own = layer.write(folder, {f"{HOME}/run.yaml": (Path(__file__).parent / "run.yaml").read_bytes()})
    return of(NAME, environment.layer(LOCK, HOME), own)


def bare() -> Image:
    """The same without any configuration."""
    return of(BARE, environment.layer(LOCK, HOME))


def of(name: str, *layers: Path) -> Image:
    """An image of these layers, with its environment at HOME."""
    # HOME is the root, as in upstream's images: state goes to /.llama, where the operator mounts the storage
    env = {"PATH": f"{HOME}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": "/"}
    return Image(name, layers, env=env, user=1001)
