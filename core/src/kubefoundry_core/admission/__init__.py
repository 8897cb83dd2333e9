"""Answers the API server's admission reviews."""
