"""Makes what needs the network, the environments of the images; at once where they are there already."""

from __future__ import annotations

from pods.images import distribution, environment, provider

if __name__ == "__main__":
    for lock, home in ((distribution.LOCK, distribution.HOME), (provider.LOCK, provider.BUILD)):
        environment.layer(lock, home)
