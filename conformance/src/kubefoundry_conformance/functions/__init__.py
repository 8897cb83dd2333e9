"""Checks of a provider's pure functions: no process, no API server."""
