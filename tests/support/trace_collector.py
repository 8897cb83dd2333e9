"""A collector of OpenTelemetry spans on loopback, which decodes what an exporter sends."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from kubefoundry_local.ports import free_port


@dataclass(frozen=True, slots=True)
class Span:
    """A span.

    Attributes:
        service: The name of the service.
        name: The name of the span.
        attributes: Its attributes.
        links: The ids of the traces to which it links.
        failed: Whether its status is an error.
        description: The text of its status.
    """

    service: str
    name: str
    attributes: Mapping[str, Any]
    links: tuple[bytes, ...]
    failed: bool
    description: str


@dataclass(slots=True)
class Collector:
    """The received spans."""

    endpoint: str
    spans: list[Span] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        """Decode and keep the spans of one request."""
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for resource in request.resource_spans:
            service = _values(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [
                    Span(
                        service=service,
                        name=span.name,
                        attributes=_values(span.attributes),
                        links=tuple(link.trace_id for link in span.links),
                        failed=span.status.code == span.status.STATUS_CODE_ERROR,
                        description=span.status.message,
                    )
                    for span in scope.spans
                ]


def _values(attributes: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in attributes}


@asynccontextmanager
async def trace_collector() -> AsyncIterator[Collector]:
    """Yield a collector that receives OTLP over HTTP."""
    port = free_port()
    collector = Collector(f"http://127.0.0.1:{port}")

    async def receive(request: web.Request) -> web.Response:
        body = await request.read()
        collector.take(gzip.decompress(body) if request.headers.get("Content-Encoding") == "gzip" else body)
        return web.Response(body=b"", content_type="application/x-protobuf")

    app = web.Application()
    app.router.add_post("/v1/traces", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield collector
    finally:
        await runner.cleanup()
