"""Alerts: what somebody should look at now. Each is reported once.

Rule: a rule looks only at settled events, in the log's order; times are the log's. So the alerts of
a log don't depend on how its records were cut into micro-batches, and a micro-batch that runs again
gives the same lines. `AlertsCarried` holds what a rule must remember.

- `privileged`: a row of audit.tables.PRIVILEGED.
- `flapping_broker`: a broker was fenced `fencings` times within `fencing_window_ms`. The next alert
  for that broker needs fewer fencings within such a window first.
- `leaderless_partition`: a partition lost its leader and had none `leaderless_ms` later.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from audit.reading.callers import caller
from audit.reading.settling import Moment
from audit.spark import partition_fold
from audit.spark.days import DAY_MS, day_text
from audit.tables import PRIVILEGED as PRIVILEGED_TABLE
from metadata.records import (
    NO_LEADER,
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    FencingChange,
)

PRIVILEGED: Final = "privileged"
FLAPPING: Final = "flapping_broker"
LEADERLESS: Final = "leaderless_partition"


class AlertRules(msgspec.Struct, frozen=True):
    """The limits from which an alert is given."""

    fencings: int = 3
    fencing_window_ms: int = 10 * 60 * 1000
    leaderless_ms: int = 60 * 1000


class Alert(msgspec.Struct, frozen=True):
    """One alert; (kind, subject, offset) tells it from all others."""

    kind: str
    subject: str
    """`broker:3`, `partition:orders-1`, or the subject of the privileged change."""
    offset: int
    """The offset of the record that caused it."""
    time_ms: int
    """When it was due, by the log's time."""
    sentence: str


class LeaderlessPartition(msgspec.Struct, frozen=True):
    """A partition without a leader."""

    topic_id: str
    partition: int
    topic_name: str
    offset: int
    """Offset of the record that took its leader away."""
    since_ms: int
    told: bool = False
    """Its alert was given."""


class AlertsCarried(msgspec.Struct, frozen=True):
    """What the rules hand to the next micro-batch."""

    fencings: dict[str, tuple[int, ...]] = {}
    """By broker: when it was fenced, in ms, as far back as the rule looks."""
    lost: tuple[LeaderlessPartition, ...] = ()


class PrivilegedChange(NamedTuple):
    """A privileged change."""

    offset: int
    timestamp_ms: int
    kind: str
    subject: str
    principal: str
    on_behalf_of: str
    auth_method: str
    client_address: str
    acted_as: str
    operation: str


class FencedBroker(NamedTuple):
    """A registered broker was fenced."""

    offset: int
    broker_id: int
    settled_ms: int


class LeaderChange(NamedTuple):
    """A partition lost its leader, got one, or was removed."""

    offset: int
    topic_id: str
    partition: int
    topic_name: str | None
    settled_ms: int
    kind: str
    leader: int | None


class Concerning(NamedTuple):
    """What of a micro-batch concerns a rule, in the log's order: little, so it is collected."""

    changes: list[PrivilegedChange]
    fencings: list[FencedBroker]
    leaders: list[LeaderChange]


def concerning(
    privileged: Iterable[tuple[Any, ...]],
    moments: Iterable[Moment],
    leaders: Iterable[partition_fold.LeaderTurn],
) -> Concerning:
    """Return what concerns a rule. `privileged`: rows of audit.tables.PRIVILEGED."""
    names = [column.name for column in PRIVILEGED_TABLE.columns]
    places = [names.index(field) for field in PrivilegedChange._fields]
    changes = [PrivilegedChange(*(row[place] for place in places)) for row in privileged]
    fencings = [
        FencedBroker(logged.offset, broker_id, moment.time_ms)
        for moment in moments
        for logged in moment.records
        for broker_id in _fenced(logged.record)
    ]
    changed = [
        LeaderChange(
            each.offset,
            each.topic_id,
            each.partition,
            each.topic_name,
            each.settled_ms,
            "removed" if each.removed else "changed",
            each.leader,
        )
        for each in leaders
    ]
    return Concerning(changes, fencings, changed)


def _fenced(record: object) -> tuple[int, ...]:
    match record:
        case BrokerRegistrationChangeRecord(broker_id=broker_id, fenced=FencingChange.FENCE):
            return (broker_id,)
        case FenceBrokerRecord(id=broker_id):
            return (broker_id,)
    return ()


def finding_row(alert: Alert) -> tuple[object, ...]:
    """Return an alert as a row of audit.tables.FINDINGS."""
    day = day_text(alert.time_ms // DAY_MS)
    said = ("", "", "", "", alert.sentence, [alert.offset])
    return (alert.offset, alert.kind, "warning", alert.subject, alert.time_ms, day, *said)


def judge(
    carried: AlertsCarried, concerning: Concerning, horizon_ms: int, rules: AlertRules
) -> tuple[AlertsCarried, list[Alert]]:
    """Decide which alerts to give. Plain Python over the few rows that concern a rule."""
    alerts = list(map(_of_change, concerning.changes))
    fencings, flapping = _flapping(carried.fencings, concerning.fencings, rules)
    lost, leaderless = _leaderless(carried, concerning.leaders, horizon_ms, rules)
    alerts += [*flapping, *leaderless]
    alerts.sort(key=lambda alert: (alert.time_ms, alert.offset, alert.kind, alert.subject))
    return AlertsCarried(fencings, lost), alerts


def _of_change(row: PrivilegedChange) -> Alert:
    by = caller(row.principal, row.on_behalf_of, row.auth_method, row.client_address, row.acted_as)
    operation = row.operation or "an unnamed operation"
    sentence = f"{by} changed {row.subject} ({row.kind}) by {operation}"
    return Alert(PRIVILEGED, row.subject, row.offset, row.timestamp_ms, sentence)


def _flapping(
    before: dict[str, tuple[int, ...]], fencings: list[FencedBroker], rules: AlertRules
) -> tuple[dict[str, tuple[int, ...]], list[Alert]]:
    times = {broker: list(seen) for broker, seen in before.items()}
    alerts = []
    for offset, broker_id, time_ms in fencings:
        seen = times.setdefault(str(broker_id), [])
        seen[:] = [time for time in seen if time > time_ms - rules.fencing_window_ms]
        seen.append(time_ms)
        if len(seen) == rules.fencings:
            minutes = rules.fencing_window_ms / 60_000
            sentence = f"broker {broker_id} was fenced {len(seen)} times within {minutes:g} minutes"
            alerts.append(Alert(FLAPPING, f"broker:{broker_id}", offset, time_ms, sentence))
    return {broker: tuple(seen) for broker, seen in times.items()}, alerts


def _leaderless(
    carried: AlertsCarried, rows: list[LeaderChange], horizon_ms: int, rules: AlertRules
) -> tuple[tuple[LeaderlessPartition, ...], list[Alert]]:
    lost = {(one.topic_id, one.partition): one for one in carried.lost}
    alerts = []
    for row in rows:
        key = (row.topic_id, row.partition)
        if row.kind != "removed" and row.leader is None:
            continue
        if row.kind != "removed" and row.leader == NO_LEADER:
            name = row.topic_name or row.topic_id
            lost.setdefault(key, LeaderlessPartition(*key, name, row.offset, row.settled_ms))
        elif key in lost:
            one = lost.pop(key)
            if not one.told and row.settled_ms - one.since_ms >= rules.leaderless_ms:
                alerts.append(_told(one, rules))
    for key, one in lost.items():
        if not one.told and horizon_ms - one.since_ms >= rules.leaderless_ms:
            alerts.append(_told(one, rules))
            lost[key] = msgspec.structs.replace(one, told=True)
    return tuple(lost.values()), alerts


def _told(lost: LeaderlessPartition, rules: AlertRules) -> Alert:
    subject = f"partition:{lost.topic_name}-{lost.partition}"
    seconds = rules.leaderless_ms / 1000
    sentence = f"{subject} lost its leader and has had none for {seconds:g} s"
    due_ms = lost.since_ms + rules.leaderless_ms
    return Alert(LEADERLESS, subject, lost.offset, due_ms, sentence)
