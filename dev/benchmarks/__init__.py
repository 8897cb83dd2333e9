"""Measure the cost and the speed of KubeFoundry on a real control plane: `python -m benchmarks`."""
