"""Traces of requests: what a handler says of its steps, whoever records them.

Rule: no code here or in the cores knows OpenTelemetry; `runtime.otlp` does. Without tracing a
`Request` has no trace, and each place that could say something costs one comparison with None.
"""

from collections.abc import Mapping
from typing import Protocol


class RequestTrace(Protocol):
    """One request that is traced."""

    def step(self, name: str) -> None:
        """End the step before, if there is one, and begin this one."""

    def end(self, status: int) -> None:
        """The answer has this HTTP status. Ends the last step too."""


class Tracing(Protocol):
    """Begins traces."""

    def begin(
        self, method: str, route: str, headers: Mapping[str, str], request_id: str
    ) -> RequestTrace | None:
        """Continue the trace that the headers name (W3C `traceparent`), or begin one.

        None: this request is not traced.
        """
