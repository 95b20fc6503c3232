"""Alerts: what somebody should look at now. Each is reported once.

Rule: a rule looks only at settled events, in the log's order; times are the log's. So the alerts of
a log don't depend on how its records were cut into micro-batches, and a micro-batch that runs again
gives the same lines. `pipeline_store.Carried` holds what a rule must remember.

- `privileged`: a row of audit.tables.PRIVILEGED.
- `flapping_broker`: a broker was fenced `fencings` times within `fencing_window_ms`. The next alert
  for that broker needs fewer fencings within such a window first.
- `leaderless_partition`: a partition lost its leader and had none `leaderless_ms` later.
"""

from typing import Final, NamedTuple

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from audit.reading.callers import caller
from audit.spark.pipeline_store import Carried, LeaderlessPartition
from metadata.records import NO_LEADER

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


class Happened(NamedTuple):
    """A micro-batch's settled events, as tables."""

    partitions: DataFrame
    """Of audit.tables.PARTITION_EVENTS."""
    brokers: DataFrame
    """Of `silver.broker_events`."""
    privileged: DataFrame
    """Of audit.tables.PRIVILEGED."""


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


def watch(carried: Carried, happened: Happened, rules: AlertRules) -> tuple[Carried, list[Alert]]:
    """Return what the next micro-batch must remember, and the alerts to give now.

    `carried.horizon_ms` is that of the micro-batch's end.
    """
    return judge(carried, gather(happened, carried), rules)


def gather(happened: Happened, carried: Carried) -> Concerning:
    """Collect what concerns a rule."""
    changes = happened.privileged.select(*PrivilegedChange._fields).collect()
    fenced = happened.brokers.where((F.col("kind") == "changed") & F.col("fenced"))
    return Concerning(
        sorted(PrivilegedChange(*row) for row in changes),
        sorted(FencedBroker(*row) for row in fenced.select(*FencedBroker._fields).collect()),
        _leader_changes(happened.partitions, carried),
    )


def _leader_changes(events: DataFrame, carried: Carried) -> list[LeaderChange]:
    """Collect the losses of a leader, and the events that may end one."""
    rows = events.select(*LeaderChange._fields)
    losses = rows.where((F.col("leader") == NO_LEADER) & (F.col("kind") != "removed"))
    found = [LeaderChange(*row) for row in losses.collect()]
    known = {(one.topic_id, one.partition) for one in carried.lost}
    known |= {(one.topic_id, one.partition) for one in found}
    if known:
        keys = events.sparkSession.createDataFrame(
            sorted(known), "topic_id string, partition bigint"
        )
        ends = rows.where((F.col("leader") >= 0) | (F.col("kind") == "removed"))
        ended = ends.join(F.broadcast(keys), ["topic_id", "partition"], "leftsemi")
        found += [LeaderChange(*row) for row in ended.select(*LeaderChange._fields).collect()]
    return sorted(found, key=lambda row: row.offset)


def judge(
    carried: Carried, concerning: Concerning, rules: AlertRules
) -> tuple[Carried, list[Alert]]:
    """Decide which alerts to give. Plain Python over the few rows that concern a rule."""
    alerts = list(map(_of_change, concerning.changes))
    fencings, flapping = _flapping(carried.fencings, concerning.fencings, rules)
    lost, leaderless = _leaderless(carried, concerning.leaders, rules)
    alerts += [*flapping, *leaderless]
    alerts.sort(key=lambda alert: (alert.time_ms, alert.offset, alert.kind, alert.subject))
    return msgspec.structs.replace(carried, fencings=fencings, lost=lost), alerts


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
    carried: Carried, rows: list[LeaderChange], rules: AlertRules
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
        if not one.told and carried.horizon_ms - one.since_ms >= rules.leaderless_ms:
            alerts.append(_told(one, rules))
            lost[key] = msgspec.structs.replace(one, told=True)
    return tuple(lost.values()), alerts


def _told(lost: LeaderlessPartition, rules: AlertRules) -> Alert:
    subject = f"partition:{lost.topic_name}-{lost.partition}"
    seconds = rules.leaderless_ms / 1000
    sentence = f"{subject} lost its leader and has had none for {seconds:g} s"
    due_ms = lost.since_ms + rules.leaderless_ms
    return Alert(LEADERLESS, subject, lost.offset, due_ms, sentence)
