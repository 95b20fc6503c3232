"""`logberg audit findings --follow`: findings as the log grows, to the terminal and to sinks.

Rule: the log is read from its beginning, and nothing is told that was found before the place at
which following begins: --from, else where the spool says that the last run ended, else the log's
end. A finding that gathered more is told again, under the same id.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from audit.findings.finding import Finding
from audit.findings.log_findings import LogWatch, follow_findings
from audit.findings.rules import RuleSet, Severity
from audit.places.replicas import one_replica, open_replicas
from audit.questions.search import first_offset
from audit.reading.feed import Feed, Question
from audit.reading.follow import follow_batches
from audit.reading.settling import Moment
from logberg.cli.interrupt import noting_interrupt
from logberg.cli.output import note, print_line
from logberg.commands.audit.failures import failing, print_notes
from logberg.commands.audit.finding_output import print_short
from logberg.commands.audit.finding_sinks import OpenSinks, SinkOptions, opened_sinks


class FollowOptions(NamedTuple):
    """What is asked."""

    where: str
    from_: str | None
    until_offset: int | None
    interval_s: float
    least: Severity
    as_json: bool


def follow(asked: FollowOptions, rules: RuleSet, options: SinkOptions) -> None:
    """Follow until Ctrl-C, or until the offset that was asked for."""
    try:
        with failing(), opened_sinks(options) as sinks, noting_interrupt() as look:
            _follow(asked, rules, sinks, look)
    except KeyboardInterrupt:
        return


def _follow(
    asked: FollowOptions, rules: RuleSet, sinks: OpenSinks, look: Callable[[], None]
) -> None:
    replica = one_replica(asked.where)
    reader = replica.reader()
    notes: list[str] = []
    beginning = Feed(Question([replica], notes=notes)).beginning()
    print_notes(notes)
    if asked.from_ is not None:
        start = first_offset(reader, asked.from_)
    else:
        start = reader.log_end if sinks.position is None else sinks.position
    watch = LogWatch(rules)
    watch.begin(beginning)

    def give(moment: Moment, found: list[Finding]) -> None:
        if moment.records[-1].offset < start:
            return
        worth = [one for one in found if one.severity >= asked.least and _is_news(one)]
        for one in worth:
            if asked.as_json:
                print_line(one.as_json())
            else:
                print_short(one)
        sinks.give(worth, moment.records[-1].offset + 1)

    def pause() -> None:
        look()
        sinks.retry()
        time.sleep(asked.interval_s)
        look()

    if sinks.position is not None and asked.from_ is None:
        note(f"the last run ended at offset {sinks.position}; findings from there on are told")
    batches = follow_batches(
        open_replicas(asked.where), beginning.offset, pause=pause, until=asked.until_offset
    )
    follow_findings(batches, watch, give)


def _is_news(one: Finding) -> bool:
    """A finding that closes with what it opened with was told already."""
    return one.open or one.count > 1
