"""Traces of commands: with the variable LOGBERG_TRACES, a command sends the spans of its changes.

Rule: without the variable nothing is imported.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from logberg.cli.failure import Failure
from runtime.otlp import TracingUnavailableError, open_tracer

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

TRACES_VARIABLE: Final = "LOGBERG_TRACES"
"""The URL of a collector, such as http://127.0.0.1:4318/v1/traces."""


@contextmanager
def command_tracer() -> Iterator["Tracer | None"]:
    """Give a command its tracer, and send the spans at its end; None: nobody asked for traces.

    Raises Failure.
    """
    endpoint = os.environ.get(TRACES_VARIABLE)
    if not endpoint:
        yield None
        return
    if not endpoint.startswith(("http://", "https://")):
        raise Failure(
            f"{TRACES_VARIABLE} is {endpoint!r}; write the URL of a collector, such as "
            "http://127.0.0.1:4318/v1/traces"
        )
    try:
        opened = open_tracer(endpoint, "logberg-cli", {})
    except TracingUnavailableError as error:
        raise Failure(f"{TRACES_VARIABLE} is set: {error}") from None
    try:
        yield opened.tracer
    finally:
        opened.close()
