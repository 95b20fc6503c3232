"""The span of one change of a client, around all its tries.

Rule: whoever made the client gave it a tracer of OpenTelemetry's, and so has imported that. The
controllers get the span's id in the header `traceparent` (W3C), and their spans become its
children. The span is itself a child of the span that is current in the program, if one is.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from logberg.client.client_errors import ClientError

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class ChangeSpan:
    """`with ChangeSpan(...) as span:` around the change."""

    def __init__(self, tracer: "Tracer", method: str, path: str, request_id: str) -> None:
        from opentelemetry import trace  # noqa: PLC0415 - the caller has imported it

        self._trace = trace
        # The first part names the operation; what follows are names of things.
        operation = "/".join(path.split("/")[:3])
        self._span = tracer.start_span(
            f"{method} {operation}",
            kind=trace.SpanKind.CLIENT,
            attributes={"http.request.method": method, "logberg.request_id": request_id},
        )

    @property
    def traceparent(self) -> str:
        """The header for the controllers; empty if this change is not recorded."""
        context = self._span.get_span_context()
        if not context.is_valid:
            return ""
        flags = int(context.trace_flags)
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            code = error.code if isinstance(error, ClientError) else type(error).__name__
            self._span.set_attribute("error.type", code)
            self._span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, str(error)))
        self._span.end()
