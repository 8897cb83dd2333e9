"""Read counters of the API server."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kubefoundry_local.control_plane import ControlPlane


def samples(plane: ControlPlane, counter: str) -> Sequence[Sample]:
    """Return the samples of a counter. Only its lines are parsed, because all metrics would take seconds."""
    lines = plane.kubectl("get", "--raw", "/metrics").stdout.splitlines()
    text = "\n".join(line for line in lines if line.startswith((f"{counter}{{", f"{counter} ")))
    return [sample for family in text_string_to_metric_families(f"{text}\n") for sample in family.samples]


def total(samples: Sequence[Sample], **labels: str) -> float:
    """Return the sum of the samples with these labels."""
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())
