"""Layers of the images that the pods' node runs."""
