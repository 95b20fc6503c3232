"""Writes the figures of fault runs into a page, between its marks.

Rule: the figures come from a run. The text around them is written by hand, and stays.
"""

import datetime as dt
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from tests.kafka.faults.verdict import FaultVerdict

_BEGIN, _END = "<!-- made: {name} -->", "<!-- end: {name} -->"
_SHOWN: Final = {
    "kill": "leader killed (SIGKILL), started again after 2 s",
    "pause": "leader paused (SIGSTOP) for 8 s",
    "cut": "leader cut off from the other controllers for 8 s",
    "disk": "leader's disk full for 8 s",
}


class FaultRun(NamedTuple):
    """One run and what was found."""

    fault: str
    on: str
    minutes: float
    found: FaultVerdict
    conditions: str

    def said(self) -> str:
        """Return a line for people."""
        found = self.found
        return (
            f"{self.fault} on {self.on}: {found.strikes} faults, {found.elections} elections; "
            f"{found.messages.count} messages acknowledged, {found.lost} lost, {found.doubled} "
            f"doubled, {found.failed} failed, longest gap {found.messages.longest_gap} ms, p99 "
            f"{found.messages.p99} ms; {found.changes.count} changes, {found.lost_changes} lost, "
            f"{found.failed_changes} failed, longest gap {found.changes.longest_gap} ms, p99 "
            f"{found.changes.p99} ms; {found.fenced} fenced, {found.restarted} restarted"
            f"{f'; errors: {found.errors}' if found.errors else ''}"
        )


def table(runs: Sequence[FaultRun]) -> str:
    """Return the figures as a table."""
    head = (
        "| fault | controllers | minutes | faults | messages | lost | gap | p99 | changes | lost | "
        "failed | gap | p99 | fenced | restarted |\n"
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    )
    return head + "".join(map(_row, runs))


def _row(run: FaultRun) -> str:
    found = run.found
    cells = (
        _SHOWN[run.fault],
        "Logberg" if run.on == "ours" else "stock KRaft",
        f"{run.minutes:g}",
        found.strikes,
        f"{found.messages.count:,}",
        found.lost,
        _seconds(found.messages.longest_gap),
        _seconds(found.messages.p99),
        f"{found.changes.count:,}",
        found.lost_changes,
        found.failed_changes,
        _seconds(found.changes.longest_gap),
        _seconds(found.changes.p99),
        found.fenced,
        found.restarted,
    )
    return "| " + " | ".join(map(str, cells)) + " |\n"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def conditions(version: str) -> str:
    """Return the sentence that says where and when figures were measured."""
    today = dt.datetime.now(dt.UTC).strftime("%-d %B %Y")
    one, _, fifteen = os.getloadavg()
    return (
        f"Measured on {today}: {os.cpu_count()} cores, {platform.system()}, Python "
        f"{platform.python_version()}, Kafka {version}; six server processes and the clients share "
        f"the cores. Load average at the end {one:.1f}, over 15 minutes {fifteen:.1f}."
    )


def add_run(path: Path, run: FaultRun) -> None:
    """Add a run to a file, as a line of JSON."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(run) + b"\n")


def read_runs(path: Path) -> list[FaultRun]:
    """Read the runs of a file."""
    return [msgspec.json.decode(line, type=FaultRun) for line in path.read_bytes().splitlines()]


def write_page(path: Path, runs: Sequence[FaultRun]) -> None:
    """Write the table into the page, with the conditions of its runs."""
    said = "\n".join(dict.fromkeys(run.conditions for run in runs))
    write_part(path, "failover", f"{said}\n\n{table(runs)}")


def write_part(path: Path, name: str, text: str) -> None:
    """Replace what stands between the marks of one part. Raises ValueError if there are none."""
    begin, end = _BEGIN.format(name=name), _END.format(name=name)
    page = path.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"{path} has no part {begin} … {end}")
    path.write_text(pattern.sub(lambda _: f"{begin}\n{text}{end}", page, count=1), encoding="utf-8")
