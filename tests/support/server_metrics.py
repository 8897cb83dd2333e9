"""What the API server counts."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kubefoundry_local.control_plane import ControlPlane


def samples(plane: ControlPlane, counter: str) -> Sequence[Sample]:
    """Of that counter, named as the server does. It counts so much else that all of it takes seconds to parse."""
    lines = plane.kubectl("get", "--raw", "/metrics").stdout.splitlines()
    text = "\n".join(line for line in lines if line.startswith((f"{counter}{{", f"{counter} ")))
    return [found for family in text_string_to_metric_families(f"{text}\n") for found in family.samples]


def total(found: Sequence[Sample], **labels: str) -> float:
    """Sum of those that carry these labels."""
    return sum(one.value for one in found if labels.items() <= one.labels.items())
