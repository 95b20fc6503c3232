"""Judges a run: what was lost, who was fenced, and how long clients waited.

Rule: what clients were told is held against what others hold: messages against what a consumer
read, changes against the metadata log on a broker's own disk. Our controllers and stock KRaft are
judged by the same bytes.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.kafka.broker_logs import MetadataEntry
from tests.kafka.faults.load import TOPIC, Told

_TOPIC_CONFIG = 2


class Waits(NamedTuple):
    """How long something took, in ms."""

    count: int
    median: int
    p99: int
    longest: int
    longest_gap: int
    """The longest time in which none was acknowledged."""


class FaultVerdict(NamedTuple):
    """What was found."""

    lost: int
    """Messages that were acknowledged and are not where the brokers said."""
    doubled: int
    """Messages that stand in the log twice."""
    lost_changes: int
    """Changes that were acknowledged and are not in the metadata log."""
    failed: int
    failed_changes: int
    fenced: int
    restarted: int
    elections: int
    strikes: int
    messages: Waits
    changes: Waits
    errors: str = ""
    """How clients' requests failed: the names of Java's exceptions with their numbers."""

    def problems(self) -> list[str]:
        """Say what must not be, a sentence each."""
        named = {
            "acknowledged messages are lost": self.lost,
            "messages stand in the log twice": self.doubled,
            "acknowledged changes are lost": self.lost_changes,
            "messages failed": self.failed,
            "times a broker was fenced": self.fenced,
            "brokers were restarted": self.restarted,
        }
        return [f"{count} {what}" for what, count in named.items() if count]


def judge(
    told: Told, log: Sequence[MetadataEntry], since_ms: int, *, strikes: int, elections: int
) -> FaultVerdict:
    """Judge a run. `log`: a broker's metadata log. `since_ms`: when the load began."""
    at = {(message.partition, message.offset): message.value for message in told.acked}
    twice = Counter(told.read.values())
    configs = {
        int(entry.fields["Value"])
        for entry in log
        if entry.kind == "ConfigRecord"
        and entry.fields["ResourceType"] == _TOPIC_CONFIG
        and entry.fields["ResourceName"] == TOPIC
        and (entry.fields["Value"] or "").isdecimal()
    }
    during = [entry for entry in log if entry.timestamp_ms >= since_ms]
    return FaultVerdict(
        lost=sum(told.read.get(place) != value for place, value in at.items()),
        doubled=sum(count > 1 for count in twice.values()),
        lost_changes=sum(change.value not in configs for change in told.changes),
        failed=len(told.failed),
        failed_changes=len(told.failed_changes),
        fenced=sum(map(_fences, during)),
        restarted=sum(entry.kind == "RegisterBrokerRecord" for entry in during),
        elections=elections,
        strikes=strikes,
        messages=waits([(m.due_ms, m.acked_ms) for m in told.acked]),
        changes=waits([(c.began_ms, c.ended_ms) for c in told.changes]),
        errors=_errors([*told.failed, *told.failed_changes]),
    )


def waits(times: Sequence[tuple[int, int]]) -> Waits:
    """Return figures of (began, ended) pairs."""
    took = sorted(ended - began for began, ended in times)
    if not took:
        return Waits(0, 0, 0, 0, 0)
    ends = sorted(ended for _, ended in times)
    gaps = [after - before for before, after in pairwise(ends)]
    return Waits(
        len(took),
        took[len(took) // 2],
        took[len(took) * 99 // 100],
        took[-1],
        max(gaps, default=0),
    )


def _errors(failures: Sequence[str]) -> str:
    counts = Counter(failure.split()[-1] for failure in failures)
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _fences(entry: MetadataEntry) -> bool:
    """Return whether a record fences a broker. A controlled shutdown does not."""
    if entry.kind == "BrokerRegistrationChangeRecord":
        return bool(entry.fields["Fenced"] == 1)
    return entry.kind == "FenceBrokerRecord"
