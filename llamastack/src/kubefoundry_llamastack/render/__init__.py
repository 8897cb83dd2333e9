"""Renders the children of a CR as pure functions."""
