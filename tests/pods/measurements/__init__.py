"""Measurements of services of providers on a real llama-stack server."""
