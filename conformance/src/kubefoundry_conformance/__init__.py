"""Checks a provider or a selector against the rules of the contract (docs/conformance.md)."""
