"""What anybody submits to a witness writes few lines in its log, and all of it is counted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog
from structlog.testing import capture_logs

from ledger.merkle.submissions import PATH
from logberg.witness.answering import WitnessAnswers
from runtime.http.requests import Reply, Request
from runtime.sockets.refusals import KINDS_MAX, LINES_AT_ONCE, Refusals
from tests.unit.audit.nodes import InlineDisk
from tests.unit.logberg.witness.submitting import KEYS, SubmittingLog
from tests.unit.logberg.witness.test_witness import witness_in


class Submitted:
    """A witness whose timers fire when the test says so."""

    def __init__(self, folder: Path) -> None:
        witness, state, _ = witness_in(folder)
        disk: Any = InlineDisk(folder)
        self.timers: list[Callable[[], None]] = []
        log = structlog.get_logger()
        refusals = Refusals(log, lambda _, call: self.timers.append(call))
        self.answers = WitnessAnswers(witness, state, disk, lambda _why: None, refusals, log)

    def submit(self, body: bytes) -> int:
        replies: list[Reply] = []
        self.answers.handle(Request("POST", PATH, body), replies.append)
        (reply,) = replies
        return reply.status

    def pass_interval(self) -> None:
        timers, self.timers = self.timers, []
        for timer in timers:
            timer()


def events(lines: Any, name: str) -> list[Any]:
    return [line for line in lines if line["event"] == name]


def test_junk_writes_few_lines_and_is_counted_exactly(tmp_path: Path) -> None:
    submitted = Submitted(tmp_path)
    log = SubmittingLog()
    with capture_logs() as lines:
        for number in range(1_000):
            assert submitted.submit(b"junk") == 400
            assert submitted.submit(log.submission(0, number % 400 + 1, KEYS[:1])) == 403
        submitted.pass_interval()
    refused = events(lines, "submission_refused")
    assert len(refused) <= LINES_AT_ONCE + KINDS_MAX
    assert len(lines) <= LINES_AT_ONCE + KINDS_MAX + 1
    assert sum(line["count"] for line in lines) == 2_000
    figures = submitted.answers.registry.render().decode()
    assert 'logberg_witness_submissions_total{outcome="malformed"} 1000' in figures
    assert 'logberg_witness_submissions_total{outcome="not_signed"} 1000' in figures


def test_a_contradiction_is_told_once_and_no_flood_hides_it(tmp_path: Path) -> None:
    submitted = Submitted(tmp_path)
    log = SubmittingLog()
    forged = SubmittingLog(seed=2, same=log, until=60)
    with capture_logs() as lines:
        submitted.submit(log.submission(0, 100))
        for number in range(300):
            submitted.submit(log.submission(0, number + 1, KEYS[:1]))
        for _ in range(50):
            assert submitted.submit(forged.submission(100, 200)) == 422
    (told,) = events(lines, "submission_contradicts")
    assert (tmp_path / told["evidence"]).is_file()


def test_a_head_that_is_submitted_again_is_told_once(tmp_path: Path) -> None:
    submitted = Submitted(tmp_path)
    log = SubmittingLog()
    with capture_logs() as lines:
        submitted.submit(log.submission(0, 100))
        for _ in range(50):
            assert submitted.submit(log.submission(100, 100)) == 200
        submitted.submit(log.submission(100, 200))
    assert [line["batches"] for line in events(lines, "head_cosigned")] == [100, 200]
