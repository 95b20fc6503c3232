"""Sends traces to a collector over OTLP/HTTP, by OpenTelemetry's SDK.

Rule: OpenTelemetry is imported by `open_tracer` only, so a process without tracing neither needs it
nor waits for it. A thread of the SDK sends what has ended; a collector that doesn't answer costs
spans, and never a request.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from runtime.tracing import RequestTrace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

_EXPORT_S: Final = 2.0
"""The longest time for one try to send spans."""
_TRACE_HEADERS: Final = ("traceparent", "tracestate")


class TracingUnavailableError(Exception):
    """OpenTelemetry is not installed; the message says what to do."""


class OpenTracer:
    """A tracer, and what sends its spans. Make it by `open_tracer`."""

    def __init__(self, provider: "TracerProvider") -> None:
        self._provider = provider
        self.tracer: Tracer = provider.get_tracer("logberg")

    def close(self) -> None:
        """Send what has ended, and stop. Waits for the collector, for a few seconds at most."""
        self._provider.shutdown()


def open_tracer(
    endpoint: str, service: str, attributes: Mapping[str, str], sample: float = 1.0
) -> OpenTracer:
    """Open a tracer. `sample`: the share of the traces that begin here which are recorded.

    A trace that a caller has begun is recorded if the caller records it. Raises
    TracingUnavailableError.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.sdk.trace.sampling import (  # noqa: PLC0415
            ParentBased,
            TraceIdRatioBased,
        )
    except ImportError as error:
        raise TracingUnavailableError(
            f"traces need OpenTelemetry. Install logberg[otel]. ({error})"
        ) from error
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(sample)),
        resource=Resource.create({"service.name": service, **attributes}),
        # The process ends in its own order, and calls `close`.
        shutdown_on_exit=False,
    )
    exporter = OTLPSpanExporter(endpoint, timeout=_EXPORT_S)
    provider.add_span_processor(
        BatchSpanProcessor(exporter, export_timeout_millis=_EXPORT_S * 1000)
    )
    return OpenTracer(provider)


class RequestTraces:
    """`runtime.tracing.Tracing` over a tracer."""

    def __init__(self, opened: OpenTracer, attributes: Mapping[str, Any]) -> None:
        """`attributes`: of each request's span."""
        from opentelemetry import trace  # noqa: PLC0415 - `open_tracer` has imported it
        from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

        self._tracer = opened.tracer
        self._attributes = dict(attributes)
        self._trace = trace
        self._context = tracecontext.TraceContextTextMapPropagator()

    def begin(
        self, method: str, route: str, headers: Mapping[str, str], request_id: str
    ) -> RequestTrace | None:
        carried = {name: headers[name] for name in _TRACE_HEADERS if name in headers}
        span = self._tracer.start_span(
            f"{method} {route}",
            context=self._context.extract(carried),
            kind=self._trace.SpanKind.SERVER,
            attributes={
                "http.request.method": method,
                "http.route": route,
                "logberg.request_id": request_id,
                **self._attributes,
            },
        )
        return _Recorded(self._tracer, span, self._trace) if span.is_recording() else None


class _Recorded:
    """`runtime.tracing.RequestTrace` as a span, with a child for each step."""

    def __init__(self, tracer: "Tracer", span: "Span", trace: Any) -> None:
        self._tracer = tracer
        self._span = span
        self._trace = trace
        self._within = trace.set_span_in_context(span)
        self._step: Span | None = None

    def step(self, name: str) -> None:
        if self._step is not None:
            self._step.end()
        self._step = self._tracer.start_span(name, context=self._within)

    def end(self, status: int) -> None:
        if self._step is not None:
            self._step.end()
            self._step = None
        self._span.set_attribute("http.response.status_code", status)
        if status >= 500:
            self._span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))
        self._span.end()
