"""Kills of a component at an exact request, and the objects that are left."""
