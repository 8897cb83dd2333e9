"""Writes manifests/monitoring/dashboards.yaml, the dashboards for Grafana: make manifests."""
