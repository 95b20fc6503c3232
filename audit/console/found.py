"""The findings of the log, for the first screen.

Rule: the log is judged from its beginning. So the findings are computed again when the log has
grown by some part, and say up to which offset they reach.
"""

from typing import Any, Final

import msgspec

from audit.findings.finding import Finding, newest_of_each, ranked
from audit.findings.log_findings import LogWatch, of_log
from audit.findings.rule_files import builtin_rules
from audit.places.replicas import Replica
from audit.reading.feed import Question
from audit.reading.readable_log import ReadableLog
from audit.reading.settling import moments, settled

SHOWN_MAX: Final = 50
_GROWN_BY: Final = 50
"""The log must have grown by one part of so many."""


class LogFindings(msgspec.Struct, frozen=True):
    """What somebody should look at."""

    items: tuple[Finding, ...] = ()
    """The worst first."""
    up_to: int = -1
    """The offset up to which the log was judged; -1: it was not."""
    cannot: str = ""
    """Why it can't be judged; empty if it can."""

    @property
    def is_ready(self) -> bool:
        """The log was judged, or it is known why it can't be."""
        return self.up_to >= 0

    def is_due(self, log_end: int) -> bool:
        """Return whether the log should be judged again."""
        return log_end - self.up_to > max(0, self.up_to) // _GROWN_BY

    def shown(self) -> dict[str, Any]:
        """Return the worst ones as values for JSON."""
        return {
            "items": [one.as_json() for one in self.items[:SHOWN_MAX]],
            "total": len(self.items),
            "upTo": self.up_to,
            "cannot": self.cannot,
        }


def judged(replica: Replica, reader: ReadableLog, *, with_files: bool) -> LogFindings:
    """Judge a log up to its end, or up to damage. Raises what reading a log raises."""
    end = reader.log_end
    if with_files:
        return LogFindings(tuple(of_log(Question([replica], up_to=end, damage=[]))), end)
    if reader.log_start:
        # Files have a checkpoint there. A controller serves only its log.
        return LogFindings(
            (),
            end,
            f"The controller's log begins at offset {reader.log_start}, and nothing is known of "
            "what was there before. `logberg audit findings` judges the controller's folder.",
        )
    watch = LogWatch(builtin_rules())
    found: list[Finding] = []
    for moment in moments(settled(reader.batches(None, end))):
        found += watch.step([moment])
    found += watch.watcher.step([], reader.last_timestamp_ms())
    found += watch.watcher.still_open()
    return LogFindings(tuple(ranked(newest_of_each(found))), end)
