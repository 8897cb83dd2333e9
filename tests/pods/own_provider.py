"""A provider of the user's own in the demo: `--provider FOLDER:ID:API`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from kubefoundry_nodes.images import layer
from kubefoundry_nodes.kubelet.image import Image
from llamastack_providers import apis, lint
from llamastack_providers.layout import PROVIDER
from pods.images.provider import USER


@dataclass(frozen=True, slots=True)
class OwnProvider:
    """A folder that is to become /lls-provider of an image.

    Attributes:
        folder: The folder that `lint` checks.
        provider_id: The providerId.
        section: The section of externalProviders.
    """

    folder: Path
    provider_id: str
    section: str

    @property
    def image_name(self) -> str:
        """The name of its image on the demo's node."""
        return f"example.com/{self.provider_id}:demo"

    def image(self, work: Path) -> Image:
        """Return the image, with its layer in `work`.

        Raises:
            OSError: A file is not readable.
        """
        files = {
            f"{PROVIDER}/{path.relative_to(self.folder).as_posix()}": path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }
        return Image(self.image_name, (layer.write(work / self.provider_id, files),), user=USER)


def parse(text: str) -> OwnProvider:
    """Return the provider of the option.

    Raises:
        ArgumentTypeError: The text has another form, or the folder cannot be installed.
    """
    folder, *id_and_api = text.rsplit(":", 2)
    if len(id_and_api) != 2 or not folder or not id_and_api[0]:
        raise argparse.ArgumentTypeError(f"{text!r} is not FOLDER:ID:API, such as build/mine:mine:inference")
    provider_id, api = id_and_api
    if apis.run_name(api) is None:
        raise argparse.ArgumentTypeError(f"{api!r} is not one of {', '.join(apis.SECTIONS)}")
    if lint.main(Path(folder)) != 0:
        raise argparse.ArgumentTypeError(f"{folder} cannot be installed; correct what the lines above name")
    return OwnProvider(Path(folder), provider_id, apis.section(api))
