"""Validates ModelDeployments, writes their phase and conditions, and keeps the certificates of its webhooks."""
