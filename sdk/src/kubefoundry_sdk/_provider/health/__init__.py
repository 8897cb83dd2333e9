"""Checks whether a deployment that its upstream reports as ready really serves, and why pods do not start."""
