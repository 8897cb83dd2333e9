"""Sends the same random requests to the API server in memory and to a real one, and compares the answers."""
