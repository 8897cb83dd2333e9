"""Spans for OpenTelemetry: one for each reconcile, exported by OTLP over HTTP (docs/monitoring.md).

OpenTelemetry's own variables switch it on and configure it. Without them nothing is imported, and a reconcile costs
one comparison more. The processes share no connection, so no context can be passed between them. Instead each span
links to an id that every process computes from uid and generation: all spans with the same link are about one
generation of one object.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from kubefoundry_sdk._cluster import logs

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, SpanContext, Tracer
    from requests import Session

log = logging.getLogger(__name__)

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Variables of OpenTelemetry that name the collector. Spans are exported if one of them is set."""

DISABLED: Final = "OTEL_SDK_DISABLED"

SESSIONS: Final = (
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_TRACES_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
)
"""Variables of OpenTelemetry that name an entry point, which makes the exporter's session."""

LAST: Final = 2.0
"""Seconds for which a process that ends waits for the collector."""

OFF: Final[AbstractContextManager[None]] = nullcontext()
"""The context of a reconcile without a span."""

_tracer: Tracer | None = None


def set_up(component: str, identity: str, environment: Mapping[str, str] = os.environ) -> Callable[[], None]:
    """Export spans if the environment names a collector.

    A batch of spans is sent by a thread, and spans are dropped while the collector does not answer.

    Args:
        component: The name of the service, unless `OTEL_SERVICE_NAME` gives another.
        identity: The name of this instance of it.
        environment: The variables of the process.

    Returns:
        A function that sends the last spans. It waits for the collector, for LAST seconds at most.
    """
    global _tracer
    if not _is_requested(environment):
        return lambda: None
    attributes = {"service.instance.id": identity}
    if not environment.get("OTEL_SERVICE_NAME"):
        attributes["service.name"] = component
    try:
        provider = _exporting(attributes)
    except ImportError as error:
        missing = logs.values(error=str(error), install="kubefoundry-sdk[traces]")
        log.warning("spans are not exported, because OpenTelemetry is not installed", extra=missing)
        return lambda: None
    except Exception as error:
        # OpenTelemetry raises errors of any type about its variables. They must not stop the component.
        invalid = logs.values(error=logs.described(error))
        log.warning("spans are not exported, because a variable of OpenTelemetry is invalid", extra=invalid)
        return lambda: None
    _tracer = provider.get_tracer("kubefoundry")
    log.info("spans are exported by OTLP")

    def end() -> None:
        global _tracer
        _tracer = None
        # A collector that does not answer may hold up the shutdown for the time-out of its export, 10 s by default.
        sending = Thread(target=provider.shutdown, daemon=True)
        sending.start()
        sending.join(LAST)

    return end


def _exporting(attributes: Mapping[str, str]) -> TracerProvider:
    """Return OpenTelemetry's provider of tracers, with these attributes of the process.

    Raises:
        ImportError: OpenTelemetry is not installed.
        Exception: One of its variables is invalid.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(session=_session())))
    return provider


def _session() -> Session | None:
    """Return a session that reads no body of a collector's answer, which may be endless.

    The exporter needs the status and the headers alone. Return None if a variable names another session.
    """
    if any(os.environ.get(name) for name in SESSIONS):
        return None
    import requests

    session = requests.Session()
    session.stream = True
    session.hooks["response"].append(lambda response, **_: response.close())
    return session


def _is_requested(environment: Mapping[str, str]) -> bool:
    is_disabled = environment.get(DISABLED, "").lower() == "true"
    return not is_disabled and any(environment.get(name) for name in ENDPOINTS)


def are_exported() -> bool:
    """Return whether spans are exported."""
    return _tracer is not None


def reconcile(queue: str) -> AbstractContextManager[None]:
    """Return the context of one reconcile, whose object `logs.about` and `logs.read` name."""
    return OFF if _tracer is None else _spanned(_tracer, queue)


def fail(error: Exception, kind: str) -> None:
    """Mark the span of the running reconcile as failed, with the kind of error that the metrics have.

    The message stays in the log: it may quote a spec, and a collector may be outside of the cluster.
    """
    if _tracer is None:
        return
    from opentelemetry.trace import Status, StatusCode, get_current_span

    span = get_current_span()
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, type(error).__name__))


@contextmanager
def _spanned(tracer: Tracer, queue: str) -> Iterator[None]:
    with tracer.start_as_current_span("reconcile", attributes={"kubefoundry.queue": queue}) as span:
        try:
            yield
        finally:
            _describe(span, logs.current())


def _describe(span: Span, obj: Mapping[str, Any]) -> None:
    """Add the object to a span. What is known of it, the reconcile has read meanwhile."""
    names = {
        "namespace": "k8s.namespace.name",
        "name": "kubefoundry.object.name",
        "kind": "kubefoundry.object.kind",
        "uid": "kubefoundry.object.uid",
        "generation": "kubefoundry.object.generation",
    }
    span.set_attributes({attribute: obj[name] for name, attribute in names.items() if obj.get(name)})
    if obj.get("uid") and obj.get("generation"):
        span.add_link(_generation(str(obj["uid"]), int(obj["generation"])))


def _generation(uid: str, generation: int) -> SpanContext:
    """Return the context to which all spans about this generation of the object link."""
    from opentelemetry.trace import SpanContext, TraceFlags

    digest = hashlib.sha256(f"{uid}/{generation}".encode()).digest()
    trace_id, span_id = (int.from_bytes(part, "big") for part in (digest[:16], digest[16:24]))
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
