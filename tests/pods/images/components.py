"""Our own images, as `make images` builds them: pulled from a registry and unpacked by umoci."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Final

from images.build import build as build_layouts
from images.debian import write_lock
from images.interpreter import machine
from images.registry import registry
from kubefoundry_local.control_plane import ROOT
from kubefoundry_nodes.kubelet.image import Image
from support.tested_images import COMPONENTS

BUNDLES: Final = ROOT / "build" / "test-images"


def build() -> None:
    """Build and unpack the tested images for this machine. Needs the network."""
    shutil.rmtree(BUNDLES, ignore_errors=True)
    BUNDLES.mkdir(parents=True)
    architecture = machine()
    with tempfile.TemporaryDirectory() as work, registry(Path(work, "registry")) as server:
        layouts, lock = Path(work, "layouts"), Path(work, "lock")
        write_lock(lock, [architecture])
        for built in build_layouts(layouts, COMPONENTS, [architecture], lock):
            server.push(layouts / built.component, f"{built.component}:test")
            own = Path(work, built.component)
            own.mkdir()
            bundle = server.unpack(f"{built.component}:test", architecture, own)
            shutil.move(bundle, BUNDLES / built.component)


def image(component: str, name: str) -> Image:
    """Return the unpacked image of a component under the name that a manifest has."""
    bundle = BUNDLES / component
    process = json.loads((bundle / "config.json").read_text())["process"]
    return Image(
        name,
        (bundle / "rootfs",),
        complete=True,
        entrypoint=tuple(process["args"]),
        env=dict(variable.split("=", 1) for variable in process["env"]),
        user=process["user"]["uid"],
        workdir=process["cwd"],
    )
