"""What the API server counts."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from kubefoundry_local.control_plane import ControlPlane


def total(plane: ControlPlane, counter: str, **labels: str) -> float:
    """Sum of the series of that counter, named as the server does, that carry these labels."""
    # The parser adds the suffix to a counter that lacks it.
    sample = f"{counter.removesuffix('_total')}_total"
    families = text_string_to_metric_families(plane.kubectl("get", "--raw", "/metrics").stdout)
    return sum(
        found.value
        for family in families
        for found in family.samples
        if found.name == sample and labels.items() <= found.labels.items()
    )
