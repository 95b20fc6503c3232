"""Known vulnerabilities of locked packages are found; without an answer nothing passes in silence.

pip-audit is the real one. It asks a server on this machine that speaks OSV's protocol.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from releasing import ReleaseError, advisories
from releasing.__main__ import NOT_CHECKED, main
from releasing.advisories import AdvisoryVerdict, Checked, check_advisories, read_accepted
from tests.conformance.ports import free_port

TODAY = date(2026, 12, 1)
LOCK = """\
aa==1.0 \\
    --hash=sha256:{hash}
bb==2.0 ; python_full_version >= '3.11' \\
    --hash=sha256:{hash}
cc==3.0 ; python_full_version < '3' \\
    --hash=sha256:{hash}
""".format(hash="0" * 64)
Answer = Callable[[dict[str, Any]], tuple[int, bytes]]


def advisory(name: str) -> dict[str, Any]:
    return {
        "id": "GHSA-aaaa-bbbb-cccc",
        "aliases": ["CVE-2026-0001"],
        "summary": "a hole",
        "details": "a hole",
        "published": "2026-01-01T00:00:00Z",
        "modified": "2026-01-01T00:00:00Z",
        "affected": [
            {
                "package": {"name": name, "ecosystem": "PyPI"},
                "ranges": [
                    {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.1"}]}
                ],
            }
        ],
    }


def clean(_asked: dict[str, Any]) -> tuple[int, bytes]:
    return 200, b"{}"


def bad(asked: dict[str, Any]) -> tuple[int, bytes]:
    found = [advisory("bb")] if asked["package"]["name"] == "bb" else []
    return 200, json.dumps({"vulns": found} if found else {}).encode()


def broken(_asked: dict[str, Any]) -> tuple[int, bytes]:
    return 500, b"no"


def a_page(_asked: dict[str, Any]) -> tuple[int, bytes]:
    return 200, b"<html>log in first</html>"


@contextmanager
def source(answer: Answer) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A source on this machine: its URL, and what it was asked."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            asked.append(json.loads(body))
            status, data = answer(asked[-1])
            try:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                pass  # whoever asked has gone

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/query", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    file = tmp_path / "a.lock"
    file.write_text(LOCK)
    return file


def check(lock: Path, url: str, accepted: dict[str, date] | None = None, **more: Any) -> Checked:
    return check_advisories(lock, accepted or {}, TODAY, url=url, **more)


def test_each_package_that_this_python_needs_is_asked_about(lock: Path) -> None:
    with source(clean) as (url, asked):
        found = check(lock, url)
    assert found == Checked(
        AdvisoryVerdict.CLEAN, ("2 locked packages, asked osv: 0 known vulnerabilities",)
    )
    assert sorted((one["package"]["name"], one["version"]) for one in asked) == [
        ("aa", "1.0"),
        ("bb", "2.0"),
    ]


def test_a_finding_fails(lock: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with source(bad) as (url, _):
        found = check(lock, url)
        assert found.verdict is AdvisoryVerdict.FOUND
        assert found.lines[1:] == ("bb 2.0: CVE-2026-0001, GHSA-aaaa-bbbb-cccc; fixed in 2.1",)
        assert main(["advisories", "--url", url, "--lock", str(lock)]) == 1
    assert "GHSA-aaaa-bbbb-cccc" in capsys.readouterr().out


def test_an_accepted_one_passes_until_its_day(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with source(bad) as (url, _):
        report = advisories._ask(lock, "osv", 60, 5, url)
    monkeypatch.setattr(advisories, "_ask", lambda *_: report)
    for name in ("GHSA-aaaa-bbbb-cccc", "CVE-2026-0001"):
        assert check(lock, "", {name: TODAY}).verdict is AdvisoryVerdict.CLEAN
    late = check(lock, "", {"CVE-2026-0001": date(2026, 11, 30)})
    assert late.verdict is AdvisoryVerdict.FOUND
    assert "accepted until 2026-11-30, which is over" in late.lines[1]


@pytest.mark.parametrize("answer", [broken, a_page])
def test_a_source_that_gives_no_answer_is_no_pass(lock: Path, answer: Answer) -> None:
    with source(answer) as (url, asked):
        found = check(lock, url)
    assert asked
    assert found.verdict is AdvisoryVerdict.NOT_CHECKED
    assert found.lines[0].startswith("NOT CHECKED")
    assert len(found.lines) == 2


def test_nobody_there_is_said_and_fails_where_it_is_required(
    lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1/query"
    arguments = ["advisories", "--url", url, "--lock", str(lock)]
    assert main(arguments) == 0
    assert "NOT CHECKED" in capsys.readouterr().out
    assert main([*arguments, "--required"]) == NOT_CHECKED
    assert "NOT CHECKED" in capsys.readouterr().out


def test_a_source_that_hangs_is_given_up_in_time(lock: Path) -> None:
    done = threading.Event()

    def hang(_asked: dict[str, Any]) -> tuple[int, bytes]:
        done.wait(60)
        return 200, b"{}"

    begun = time.monotonic()
    with source(hang) as (url, _):
        try:
            found = check(lock, url, whole_s=3, request_s=60)
        finally:
            done.set()
    assert found.verdict is AdvisoryVerdict.NOT_CHECKED
    assert "no answer within 3 s" in found.lines[1]
    assert time.monotonic() - begun < 50


def test_a_package_without_an_answer_is_no_pass(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip-audit reports what it left out, and goes on."""
    report = {
        "dependencies": [
            {"name": "aa", "version": "1.0", "vulns": []},
            {"name": "bb", "skip_reason": "not found"},
        ]
    }
    monkeypatch.setattr("releasing.advisories._ask", lambda *_: report)
    found = check(lock, "")
    assert found.verdict is AdvisoryVerdict.NOT_CHECKED
    assert found.lines[1:] == ("osv: no answer about bb", "pypi: no answer about bb")


@pytest.mark.parametrize(
    "text",
    [
        'id = "A"\nuntil = 2027-01-01\n',
        'id = "A"\nuntil = 2027-01-01\nreason = " "\n',
        'id = "A"\nuntil = "some day"\nreason = "why"\n',
        'id = 1\nuntil = 2027-01-01\nreason = "why"\n',
    ],
)
def test_an_exception_needs_a_reason_and_a_day(tmp_path: Path, text: str) -> None:
    file = tmp_path / "accepted.toml"
    file.write_text(f"[[accepted]]\n{text}")
    with pytest.raises(ReleaseError, match="has id, until"):
        read_accepted(file)


def test_the_exceptions_of_this_project_are_readable() -> None:
    for name, until in read_accepted().items():
        assert name
        assert until >= TODAY
