"""Runs LlamaStackDistributions with providers that are added when the server is deployed."""
