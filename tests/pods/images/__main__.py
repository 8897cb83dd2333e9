"""Build all that needs the network: the environments of the images, which are cached, and our own images.

`--environments` leaves out our own images, which only test_components.py needs.
"""

from __future__ import annotations

import sys

from kubefoundry_nodes.images import environment
from kubefoundry_nodes.llama import image
from pods.images import components, distribution, provider

if __name__ == "__main__":
    for made in (distribution, provider, image):
        environment.layer(made.LOCK, made.HOME)
    if "--environments" not in sys.argv[1:]:
        components.build()
