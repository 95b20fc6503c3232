"""The findings of a whole log, by the embedded engine.

Rule: a log is always judged from its beginning, since what is unusual depends on what was usual.
Memory grows with the state and the findings, not with the log.
"""

from collections.abc import Callable, Iterable, Iterator

from audit.findings.event_making import EventMaker
from audit.findings.finding import Finding, newest_of_each, ranked
from audit.findings.rule_files import builtin_rules
from audit.findings.rules import RuleSet
from audit.findings.watcher import Watcher
from audit.reading.feed import Beginning, Feed, Question
from audit.reading.opening import OpenedHeads
from audit.reading.settling import Logged, Moment, moments, settled
from ledger.batch import Batch


def of_log(
    question: Question,
    rules: RuleSet | None = None,
    heads: OpenedHeads | None = None,
) -> list[Finding]:
    """Return the findings of a log, the worst first. `rules` None: the built-in rules.

    `heads` opens addresses, and counts what stays sealed; None: nothing is opened.
    Raises NoLogError, LedgerError, CheckpointError, RecordDecodeError, OSError.
    """
    feed = Feed(question)
    watch = LogWatch(rules or builtin_rules())
    beginning = feed.beginning()
    watch.begin(beginning)
    found: list[Finding] = []
    batches = feed.batches(beginning.offset)
    for moment in moments(settled(batches if heads is None else map(heads, batches))):
        found += watch.step([moment])
    found += watch.watcher.step([], feed.horizon_ms)
    found += watch.watcher.still_open()
    return ranked(newest_of_each(found))


class LogWatch:
    """A maker of events and a watcher, one behind the other."""

    def __init__(self, rules: RuleSet) -> None:
        self.maker = EventMaker()
        self.watcher = Watcher(rules)

    def begin(self, beginning: Beginning) -> None:
        """Learn where the log begins."""
        self.watcher.begin(self.maker.begin(beginning.records, beginning.time_ms))

    def step(self, moments: Iterable[Moment]) -> list[Finding]:
        """Return the findings that open or close with these moments."""
        found: list[Finding] = []
        for moment in moments:
            found += self.watcher.step(self.maker.step(moment), moment.time_ms)
        return found


def follow_findings(
    batches: Iterable[Batch], watch: LogWatch, give: Callable[[Moment, list[Finding]], None]
) -> None:
    """Watch batches as they come; after each moment, give what opened or closed, maybe nothing.

    A moment is given before the next batch is asked for, which may take long to come.
    """
    waiting: list[Logged] = []

    def step() -> None:
        for moment in moments(waiting):
            give(moment, watch.step([moment]))
        waiting.clear()

    for logged in settled(_after_each(batches, step)):
        waiting.append(logged)  # noqa: PERF402 - `step` empties it meanwhile
    step()


def _after_each(batches: Iterable[Batch], then: Callable[[], None]) -> Iterator[Batch]:
    """Yield batches; when the next one is asked for, everything of the last one was taken."""
    for batch in batches:
        yield batch
        then()
