"""Writes the Helm charts from `manifests/` and `crds/`: make manifests."""
