"""The end of the demonstration: what an auditor sees.

Rule: the demo's own cluster is minutes old and nobody broke into it. So a made-up week stands
beside it, with an intruder. The claim is checked: the audit's first finding must be the intrusion
that the week's story tells of.
"""

import time
from pathlib import Path
from typing import Final, NamedTuple

from audit.findings.finding import Finding
from audit.findings.log_findings import of_log
from audit.generated import write_history
from audit.places.replicas import open_all, open_replicas
from audit.reading.feed import Question

WEEK: Final = "made-up-week"
"""The folder, in that of the demo."""
RECORDS: Final = 3_000
"""The fewest that hold every episode, the intrusion too."""
REPORT: Final = "audit-report.html"


class FoundIntruder(NamedTuple):
    """The made-up week, and what the audit finds first in it."""

    records: int
    finding: Finding
    intrusion: range
    """The offsets of the intrusion."""

    @property
    def right(self) -> bool:
        """Whether the first finding is the intrusion."""
        return bool(self.finding.offsets) and all(
            offset in self.intrusion for offset in self.finding.offsets
        )


def find_intruder(folder: Path) -> FoundIntruder | None:
    """Write a week into `folder` and judge it; None if nothing is found. Raises OSError."""
    week = write_history(folder, records=RECORDS, replicas=3)
    (intrusion,) = week.of("intrusion")
    found = of_log(Question(open_all([str(week.nodes[0])])))
    if not found:
        return None
    end = intrusion.until_offset or week.log_end
    return FoundIntruder(week.log_end, found[0], range(intrusion.from_offset, end))


def make_reports(folder: Path) -> list[Path]:
    """Write a report of the demo's log and one of the week; none without logberg[audit].

    Raises OSError.
    """
    places = ((folder, "The demo's cluster"), (folder / WEEK, "A made-up week"))
    try:
        return [make_report(place, title) for place, title in places]
    except ImportError:
        return []


def make_report(folder: Path, title: str) -> Path:
    """Write a report of the logs in a folder into it. Raises ImportError, OSError."""
    from audit.report.gathering import Wanted, gather  # noqa: PLC0415 - an extra
    from audit.report.page import page  # noqa: PLC0415

    wanted = Wanted(None, None, title, int(time.time() * 1000), where=str(folder))
    text = page(gather(open_replicas(str(folder)), wanted, lambda *_: None))
    path = folder / REPORT
    path.write_text(text, encoding="utf-8")
    return path
