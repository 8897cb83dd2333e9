"""The client of the Kubernetes API server: credentials, requests, lists and watches."""
