"""Watches of a provider: the upstream's objects, its operator, pods, and Events about pods that cannot be created."""
