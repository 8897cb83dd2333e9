"""Metrics with the published names of engines. No engine runs here: the values are invented."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

LABELS: Final = ("namespace", "modeldeployment", "pod")
GAUGES: Final = {
    "vllm": ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"),
    "sglang": ("sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage"),
    "llamacpp": ("llamacpp:requests_processing", "llamacpp:requests_deferred"),
}
COUNTERS: Final = {
    "vllm": ("vllm:prompt_tokens", "vllm:generation_tokens"),
    "sglang": ("sglang:prompt_tokens", "sglang:generation_tokens"),
    "llamacpp": ("llamacpp:prompt_tokens", "llamacpp:tokens_predicted"),
}
HISTOGRAMS: Final = {
    "vllm": ("vllm:time_to_first_token_seconds", "vllm:e2e_request_latency_seconds"),
    "sglang": ("sglang:time_to_first_token_seconds", "sglang:e2e_request_latency_seconds"),
    "llamacpp": (),
}


@dataclass(frozen=True, slots=True)
class Engines:
    """A model of each engine, named as its engine, whose metrics a port serves."""

    port: int
    counters: list[Counter]
    histograms: list[Histogram]

    def serve_requests(self) -> None:
        """Count a request in each engine."""
        for counter in self.counters:
            counter.inc(100)
        for histogram in self.histograms:
            histogram.observe(0.3)


@contextmanager
def engines(port: int, namespace: str) -> Iterator[Engines]:
    """Serve the metrics during the block."""
    registry = CollectorRegistry()
    counters, histograms = [], []
    for engine, names in GAUGES.items():
        labels = (namespace, engine, f"{engine}-0")
        for name in names:
            Gauge(name, name, LABELS, registry=registry).labels(*labels).set(0.5)
        counters += [
            Counter(name, name, LABELS, registry=registry).labels(*labels) for name in COUNTERS[engine]
        ]
        histograms += [
            Histogram(name, name, LABELS, registry=registry).labels(*labels) for name in HISTOGRAMS[engine]
        ]
    server, thread = start_http_server(port, "127.0.0.1", registry)
    try:
        yield Engines(port, counters, histograms)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
