"""FindingDelivery to real listeners on this machine: a web server, syslog, a file. Nothing is lost.

Rule: each finding reaches each sink at least once, also if the sink is down for a while, answers
errors, or the process ends in the middle.
"""

import json
import re
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest

from audit.findings.delivery import FindingDelivery, FindingSink
from audit.findings.finding import Finding
from audit.findings.rules import Severity
from audit.findings.sinks import FileSink, SyslogSink, WebhookSink
from runtime.disk.real import RealDisk
from runtime.notices.webhook import NotTakenError
from tests.conformance.ports import free_port

ONE = Finding(
    id="access_widened@7",
    rule="access_widened",
    severity=Severity.HIGH,
    subject="acl:x",
    offset=7,
    time_ms=1_792_000_000_123,
    principal="User:ana",
    on_behalf_of="",
    auth_method="token",
    address="10.0.0.7",
    acted_as="",
    operation="CreateAcls",
    reason='she said "now]" \\ later\nor never',
    sentence="User:ana gave User:kim wide access: été.",
    count=2,
    offsets=(7, 8),
    until_ms=1_792_000_000_124,
    open=True,
    rank=1,
)
TWO = msgspec.structs.replace(ONE, id="access_widened@9", offset=9)


class WebServer:
    """A web server that answers each request with the next status, then with 200."""

    def __init__(self, port: int, statuses: list[int]) -> None:
        self.got: list[tuple[dict[str, str], Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = statuses.pop(0) if statuses else 200
                if status == 0:  # It took the finding, and the answer is lost.
                    outer.got.append((dict(self.headers), json.loads(body)))
                    return
                if status == 200:
                    outer.got.append((dict(self.headers), json.loads(body)))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", port), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def ids(self) -> list[str]:
        return [finding["id"] for _, finding in self.got]

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def web_server(port: int, statuses: list[int] | None = None) -> Iterator[WebServer]:
    server = WebServer(port, statuses or [])
    try:
        yield server
    finally:
        server.stop()


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def delivery(
    folder: Path, *sinks: FindingSink, time: Time | None = None
) -> tuple[FindingDelivery, list[str]]:
    told: list[str] = []
    return FindingDelivery(sinks, RealDisk(folder), now_s=time or Time(), tell=told.append), told


def webhook(port: int, timeout_s: float = 5.0) -> WebhookSink:
    return WebhookSink(f"http://127.0.0.1:{port}/findings?key=hidden", "s3cret", timeout_s)


def test_a_webhook_gets_the_finding_with_its_secret(tmp_path: Path) -> None:
    port = free_port()
    with web_server(port) as server:
        mine, told = delivery(tmp_path, webhook(port))
        mine.give([ONE], 9)
    ((headers, finding),) = server.got
    assert finding == ONE.as_json()
    assert headers["Authorization"] == "Bearer s3cret"
    assert headers["X-Logberg-Finding"] == ONE.id
    assert (told, mine.waiting) == ([], 0)


def test_a_sink_that_is_down_gets_everything_later_and_the_others_at_once(tmp_path: Path) -> None:
    port, time = free_port(), Time()
    file = FileSink(RealDisk(tmp_path / "out"), "findings.jsonl")
    (tmp_path / "out").mkdir()
    mine, told = delivery(tmp_path / "spool", webhook(port), file, time=time)
    mine.give([ONE], 8)
    mine.give([TWO], 10)
    lines = (tmp_path / "out" / "findings.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [ONE.id, TWO.id]
    assert len(told) == 1, "the trouble is told once"
    assert told[0].startswith("webhook doesn't take findings, 1 wait: http://127.0.0.1:")
    assert "hidden" not in told[0]
    with web_server(port) as server:
        mine.retry()
        assert server.ids == [], "its pause is not over"
        time.now_s += 10
        mine.retry()
        assert server.ids == [ONE.id, TWO.id]
    assert mine.waiting == 0


def test_what_waits_survives_the_process(tmp_path: Path) -> None:
    port = free_port()
    mine, _ = delivery(tmp_path, webhook(port))
    mine.give([ONE, TWO], 10)
    with web_server(port) as server:
        later, told = delivery(tmp_path, webhook(port))
        assert (later.waiting, later.position) == (2, 10)
        later.retry()
        assert server.ids == [ONE.id, TWO.id]
    again, _ = delivery(tmp_path, webhook(port))
    assert (again.waiting, told) == (0, [])


def test_a_crash_between_sending_and_forgetting_sends_twice_and_never_loses(tmp_path: Path) -> None:
    port = free_port()
    with web_server(port) as server:
        mine, _ = delivery(tmp_path, webhook(port))
        mine.retry()
        waiting = tmp_path / "webhook.waiting.jsonl"
        mine.give([ONE], 8)
        line = msgspec.json.encode(ONE.as_json()) + b"\n"
        waiting.write_bytes(line + line[: len(line) // 2])  # As a crash leaves it.
        later, _ = delivery(tmp_path, webhook(port))
        later.retry()
        assert server.ids == [ONE.id, ONE.id]


@pytest.mark.parametrize(
    ("status", "ids"),
    [(500, [ONE.id, TWO.id]), (401, [ONE.id, TWO.id]), (0, [ONE.id, ONE.id, TWO.id])],
)
def test_an_error_is_tried_again(status: int, ids: list[str], tmp_path: Path) -> None:
    """0: the answer is lost, so nobody knows; the same finding comes twice."""
    port, time = free_port(), Time()
    with web_server(port, [status]) as server:
        mine, told = delivery(tmp_path, webhook(port), time=time)
        mine.give([ONE, TWO], 10)
        time.now_s += 10
        mine.retry()
        assert server.ids == ids
    assert len(told) == 1


def test_what_is_refused_for_good_stops_nothing_and_is_kept(tmp_path: Path) -> None:
    port = free_port()
    with web_server(port, [422]) as server:
        mine, told = delivery(tmp_path, webhook(port))
        mine.give([ONE, TWO], 10)
        assert server.ids == [TWO.id]
    assert "refused finding access_widened@7 for good" in told[0]
    refused = (tmp_path / "webhook.refused.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in refused] == [ONE.id]
    assert mine.waiting == 0


def test_a_server_that_never_answers_costs_the_time_limit(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        mine, told = delivery(tmp_path, webhook(port, timeout_s=0.1))
        mine.give([ONE], 8)
    assert "timed out" in told[0]
    assert mine.waiting == 1


def test_pauses_grow_and_end(tmp_path: Path) -> None:
    class Down:
        name = "down"
        tries = 0

        def send(self, finding: dict[str, Any]) -> None:
            self.tries += 1
            raise NotTakenError("down")

    sink, time = Down(), Time()
    mine, told = delivery(tmp_path, sink, time=time)
    mine.give([ONE], 8)
    for _ in range(3_600):
        time.now_s += 1
        mine.retry()
    assert 10 < sink.tries < 25
    assert len(told) == 1


def test_a_full_disk_is_told_and_stops_nothing(tmp_path: Path) -> None:
    port = free_port()
    with web_server(port) as server:
        mine, told = delivery(tmp_path / "spool", webhook(port))
        (tmp_path / "spool").rmdir()
        (tmp_path / "spool").write_text("")  # As good as a disk that takes nothing.
        mine.give([ONE], 8)
        assert server.ids == [ONE.id]
    assert "the spool can't be written, so findings may be lost by a crash" in told[0]


# Syslog.

EXPECTED = re.compile(
    r"<107>1 2026-10-14T17:46:40\.123Z here logberg - access_widened "
    r'\[finding@32473 id="access_widened@7" rule="access_widened" severity="high" '
    r'principal="User:ana" clientAddress="10\.0\.0\.7" '
    r'reason="she said \\"now\\]\\" \\\\ later or never" count="2" offset="7"\] '
    "\N{ZERO WIDTH NO-BREAK SPACE}User:ana gave User:kim wide access: été\\."
)


def over_udp(path: Path) -> Generator[Any, None, None]:
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(5)
        yield f"udp://127.0.0.1:{udp.getsockname()[1]}"
        yield udp.recv(4_096)


def over_tcp(path: Path) -> Generator[Any, None, None]:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        server.settimeout(5)
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        taken, _ = server.accept()
        with taken:
            length, _, said = b"".join(iter(lambda: taken.recv(4_096), b"")).partition(b" ")
        assert int(length) == len(said)
        yield said


def over_a_unix_socket(path: Path) -> Generator[Any, None, None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unix:
        unix.bind(str(path / "log"))
        unix.settimeout(5)
        yield f"unix://{path}/log"
        yield unix.recv(4_096)


def over_a_unix_stream(path: Path) -> Generator[Any, None, None]:
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(path / "log"))
        unix.listen()
        unix.settimeout(5)
        yield f"unix://{path}/log"
        taken, _ = unix.accept()
        with taken:
            yield b"".join(iter(lambda: taken.recv(4_096), b"")).partition(b" ")[2]


@pytest.mark.parametrize("way", [over_udp, over_tcp, over_a_unix_socket, over_a_unix_stream])
def test_syslog_gets_one_line(
    way: Callable[[Path], Generator[Any, None, None]], tmp_path: Path
) -> None:
    listening = way(tmp_path)
    sink = SyslogSink(next(listening), "here", 5.0)
    sink.send(ONE.as_json())
    assert EXPECTED.fullmatch(next(listening).decode())
    listening.close()


def test_a_syslog_that_is_not_there_is_trouble(tmp_path: Path) -> None:
    for address in (f"tcp://127.0.0.1:{free_port()}", f"unix://{tmp_path}/nothing"):
        with pytest.raises(NotTakenError, match=re.escape(address)):
            SyslogSink(address, "here", 1.0).send(ONE.as_json())


@pytest.mark.parametrize(
    "bad", ["", "host:514", "udp://", "udp://host/path", "unix://host/x", "http://host"]
)
def test_what_names_no_syslog_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="is no address of syslog; write udp://"):
        SyslogSink(bad, "here", 1.0)


@pytest.mark.parametrize("bad", ["", "host/path", "ftp://host/", "http://", "file:///etc/passwd"])
def test_what_names_no_webhook_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="is no address of a webhook"):
        WebhookSink(bad, "", 1.0)


def test_a_secret_in_a_url_is_refused() -> None:
    with pytest.raises(ValueError, match="goes into a file"):
        WebhookSink("https://user:pass@host/", "", 1.0)
