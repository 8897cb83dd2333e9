"""The objects that a provider watches: the upstream's, its operator, pods, and Events about their creation."""
