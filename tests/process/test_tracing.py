"""One change is one trace, from the command that asks for it to the commit.

A receiver of the test's own takes what is sent over OTLP/HTTP.
"""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from logberg.cli.cluster_lookup import Named, find
from logberg.client.client import LogbergClient
from metadata.messages.acls import AclEntry
from tests.conformance.ports import free_port
from tests.process.running_cluster import RunningCluster, running

pytestmark = pytest.mark.process

trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

STEPS = ("wait", "decide", "propose", "commit", "answer")
CLIENT, SERVER = 3, 2
"""Kinds of spans, in OpenTelemetry's protocol."""


class Received(NamedTuple):
    """A span."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    """Empty: it has none."""
    kind: int
    began: int
    ended: int
    said: dict[str, Any]


class Collector:
    """Takes spans at `endpoint`."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}/v1/traces"
        self.spans: list[Received] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.spans += _spans(body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)


def _spans(body: bytes) -> Iterator[Received]:
    request = trace_service.ExportTraceServiceRequest.FromString(body)
    for of_process in request.resource_spans:
        service = _words(of_process.resource.attributes)["service.name"]
        for scope in of_process.scope_spans:
            for span in scope.spans:
                yield Received(
                    service,
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.kind,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    _words(span.attributes),
                )


def _words(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def collector() -> Iterator[Collector]:
    made = Collector(free_port())
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the SDK of every process send soon, by its own variable."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")


def change_of(got: Collector, cluster: RunningCluster, principal: str) -> list[Received]:
    """Add an entry for a principal by the command, and return its trace, whole."""
    said = cluster.command("acls", "add", principal, "read", "topic:a", "--data", ".")
    assert said.code == 0, said

    def trace() -> list[Received]:
        newest = [
            span for span in got.spans if span.kind == CLIENT and span.name == "POST /v1/acls"
        ]
        if not newest:
            return []
        found = [span for span in got.spans if span.trace == newest[-1].trace]
        return found if {span.name for span in found} >= set(STEPS) else []

    return cluster.until(trace, "all spans of the change have come")


def test_a_change_is_one_trace_from_the_command_to_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as got:
        settings = {"tracing": {"endpoint": got.endpoint}}
        with running(tmp_path / "cluster", 3, 0, **settings) as cluster:
            monkeypatch.setenv("LOGBERG_TRACES", got.endpoint)
            spans = change_of(got, cluster, "User:a")
            (command,) = [span for span in spans if span.kind == CLIENT]
            assert (command.service, command.parent) == ("logberg-cli", "")
            tried = [span for span in spans if span.kind == SERVER]
            assert all(span.parent == command.id for span in tried)
            (route,) = [span for span in tried if span.said["http.response.status_code"] == 200]
            assert (route.service, route.name) == ("logberg-controller", "POST /v1/acls")
            assert route.said["logberg.request_id"] == command.said["logberg.request_id"]
            assert route.said["logberg.node_id"] == cluster.leader()
            steps = sorted(
                (span for span in spans if span.parent == route.id), key=lambda each: each.began
            )
            assert tuple(span.name for span in steps) == STEPS
            times = [at for span in steps for at in (span.began, span.ended)]
            assert times == sorted(times), "one step after the other"
            assert route.began <= times[0]
            assert times[-1] <= route.ended
            monkeypatch.delenv("LOGBERG_TRACES")
            _own_span_is_the_parent(got, cluster)
        # The collector is gone, and changes are made as before.
    with running(tmp_path / "other", 1, 0, **settings) as cluster:
        monkeypatch.setenv("LOGBERG_TRACES", got.endpoint)
        began = time.monotonic()
        said = cluster.command("acls", "add", "User:b", "read", "topic:a", "--data", ".")
        assert said.code == 0, said
        assert time.monotonic() - began < 15
        cluster.stop()


def _own_span_is_the_parent(got: Collector, cluster: RunningCluster) -> None:
    """A program with a tracer of its own sees our spans within its own."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    memory = export.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    processor = pytest.importorskip("opentelemetry.sdk.trace.export").SimpleSpanProcessor(memory)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("a program")

    async def change() -> None:
        found = find(Named(None, cluster.folder, None, None, None, None, token_in_clear=False))
        async with LogbergClient(found.urls, found.access, tracer=tracer) as client:
            with tracer.start_as_current_span("deploy"):
                await client.create_acls(AclEntry("TOPIC", "b", "User:a", "READ"))

    asyncio.run(change())
    ours, own = memory.get_finished_spans()
    assert (ours.name, own.name) == ("POST /v1/acls", "deploy")
    assert ours.parent.span_id == own.context.span_id
    trace = f"{own.context.trace_id:032x}"
    cluster.until(
        lambda: [s for s in got.spans if s.trace == trace and s.name == "commit"],
        "the controller's spans are in the program's trace",
    )


@pytest.fixture
def without_the_extra(tmp_path: Path) -> dict[str, str]:
    """Variables with which OpenTelemetry can't be imported, as if it were not installed."""
    blocked = tmp_path / "blocked" / "opentelemetry"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text('raise ModuleNotFoundError("it is not installed")\n')
    path = os.pathsep.join([str(blocked.parent), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}


def _run(environment: dict[str, str], *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_the_extra_a_sentence_says_what_to_install(
    tmp_path: Path, without_the_extra: dict[str, str]
) -> None:
    cluster = RunningCluster(
        tmp_path / "cluster", 1, tracing={"endpoint": "http://127.0.0.1:1/v1/traces"}
    )
    config = str(cluster.folder / "config" / "controller-1.toml")
    said = _run(without_the_extra, "-m", "logberg", "controller", "--config", config)
    assert said.returncode != 0
    assert "[tracing] is set: traces need OpenTelemetry. Install logberg[otel]." in said.stderr
    environment = {**without_the_extra, "LOGBERG_TRACES": "http://127.0.0.1:1/v1/traces"}
    nobody = ("--controllers", "http://127.0.0.1:1")
    said = _run(environment, "-m", "logberg", "acls", "add", "User:a", "read", "topic:a", *nobody)
    assert said.returncode == 1
    assert "LOGBERG_TRACES is set: traces need OpenTelemetry." in said.stderr


def test_nothing_of_it_is_imported_unless_it_is_asked_for() -> None:
    code = (
        "import sys, logberg.cli.main, logberg.client.client, logberg.processes.controller_process,"
        "logberg.cli.connection_options;"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    said = _run(dict(os.environ), "-c", code)
    assert said.stdout.strip() == "[]", said
