"""Scrape metrics of our processes as Prometheus does."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from kubefoundry_local.suite import PROBE, Component
from support.waiting import SECONDS

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(component: Component) -> Series:
    """Return all samples by name and labels."""
    with urllib.request.urlopen(
        f"http://127.0.0.1:{component.metrics_port}/metrics", timeout=SECONDS
    ) as response:
        families = text_string_to_metric_families(response.read().decode())
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }


def sample(series: Series, name: str, /, **labels: str) -> float | None:
    """Return the sample with exactly these labels, or None."""
    return series.get((name, frozenset(labels.items())))


async def until_scraped(component: Component, holds: Callable[[Series], bool]) -> Series:
    """Return the samples once `holds` is true of them. Fail with the last samples."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        series = await asyncio.to_thread(scrape, component)
        if holds(series):
            return series
        await asyncio.sleep(PROBE)
    raise AssertionError(f"{component.name} did not reach the expected metrics: {series}")
