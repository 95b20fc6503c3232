"""Settings of traces, and the tracer that they ask for."""

import math

import msgspec

from logberg.processes.settings.settings_files import SettingsError
from runtime.otlp import OpenTracer, TracingUnavailableError, open_tracer


class TracingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[tracing]` in a controller's file: where the spans of changes go."""

    endpoint: str
    """A collector's URL for traces over OTLP/HTTP, such as http://127.0.0.1:4318/v1/traces."""
    sample: float = 1.0
    """The share of changes that are traced, 0 to 1, if their caller doesn't trace them itself."""


def tracing_problems(tracing: TracingSettings | None) -> list[str]:
    """Say what is wrong with the settings, a sentence each."""
    if tracing is None:
        return []
    found = []
    if not tracing.endpoint.startswith(("http://", "https://")):
        found.append(
            f"tracing.endpoint is {tracing.endpoint!r}; use a collector's URL, such as "
            "http://127.0.0.1:4318/v1/traces."
        )
    if math.isnan(tracing.sample) or not 0 <= tracing.sample <= 1:
        found.append(f"tracing.sample is {tracing.sample}; it must be 0 to 1.")
    return found


def tracer_for(tracing: TracingSettings | None, cluster_id: str, node_id: int) -> OpenTracer | None:
    """Open the tracer of a controller; None: nobody asked for one. Raises SettingsError."""
    if tracing is None:
        return None
    who = {"service.instance.id": f"{cluster_id}/{node_id}"}
    try:
        return open_tracer(tracing.endpoint, "logberg-controller", who, tracing.sample)
    except TracingUnavailableError as error:
        raise SettingsError(f"[tracing] is set: {error}") from None
