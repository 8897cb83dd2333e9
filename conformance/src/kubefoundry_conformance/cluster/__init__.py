"""Checks of a process against a real API server: it runs with the token of its own ServiceAccount."""
