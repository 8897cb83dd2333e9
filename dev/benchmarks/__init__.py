"""What KubeFoundry costs and how fast it is, measured on a real control plane: `python -m benchmarks`."""
