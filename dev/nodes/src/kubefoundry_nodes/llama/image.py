"""The image of llama-server, and its model."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubefoundry_nodes.images import environment, layer
from kubefoundry_nodes.kubelet.image import Image

NAME: Final = "kubefoundry.ai/llama-server:demo"
"""Not llama.cpp's own image: its server, started by launcher.py."""

HOME: Final = "/opt/llama"
LOCK: Final = environment.LOCKS / "llama-server.txt"
PROGRAM: Final = "/app/llama-server"
"""Path of the program in llama.cpp's own images."""

MODEL: Final = "tiny-random.gguf"


def image(folder: Path) -> Image:
    """Build the image, with its own layer in `folder`.

    Raises:
        CalledProcessError, RuntimeError: A package cannot be downloaded or installed.
    """
    program = f"#!{HOME}/bin/python3\n{_source('launcher')}".encode()
    own = layer.write(folder, {PROGRAM: program})
    (folder / PROGRAM.lstrip("/")).chmod(0o755)
    return Image(NAME, (environment.layer(LOCK, HOME), own), entrypoint=(PROGRAM,))


def model(folder: Path) -> Path:
    """Write the model to an existing folder, and return its file. Raises RuntimeError."""
    maker = Image("model-maker", (environment.layer(LOCK, HOME),))
    script = folder / "make.py"
    script.write_text(_source("tiny_model"))
    environment.step(maker, [f"{HOME}/bin/python3", "/made/make.py", f"/made/{MODEL}"], {"/made": folder})
    script.unlink()
    return folder / MODEL


def _source(module: str) -> str:
    return Path(__file__).with_name(f"{module}.py").read_text()
