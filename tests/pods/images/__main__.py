"""Makes what needs the network, the environments of the images; at once where they are there already."""

from __future__ import annotations

from kubefoundry_nodes.images import environment
from kubefoundry_nodes.llama import image
from pods.images import distribution, provider

if __name__ == "__main__":
    for made in (distribution, provider, image):
        environment.layer(made.LOCK, made.HOME)
