"""Reads the state of a CR's Deployment, pods and containers."""
