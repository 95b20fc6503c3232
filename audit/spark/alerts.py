"""Alerts: what somebody should look at now, told once each.

Rule: a rule looks at settled events in the log's order and at nothing else; times are the log's. So
the alerts of a log are the same however its records were cut into micro-batches, and a micro-batch
that is run again gives the same lines. What a rule must remember is in `pipeline_store.Carried`.

- `privileged`: a row of audit.tables.PRIVILEGED.
- `flapping_broker`: a broker was fenced `fencings` times within `fencing_window_ms`; then not again
  before there were fewer.
- `leaderless_partition`: a partition lost its leader and had none `leaderless_ms` later.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from audit.spark.pipeline_store import Carried, Lost

PRIVILEGED: Final = "privileged"
FLAPPING: Final = "flapping_broker"
LEADERLESS: Final = "leaderless_partition"


class AlertRules(msgspec.Struct, frozen=True):
    """From when on something is worth an alert."""

    fencings: int = 3
    fencing_window_ms: int = 10 * 60 * 1000
    leaderless_ms: int = 60 * 1000


class Alert(msgspec.Struct, frozen=True):
    """One alert; (kind, subject, offset) tells it from all others."""

    kind: str
    subject: str
    """`broker:3`, `partition:orders-1`, or what the privileged change is about."""
    offset: int
    """Of the record that set it off."""
    time_ms: int
    """When it was due, by the log's time."""
    sentence: str


class Happened(NamedTuple):
    """A micro-batch's settled events."""

    partitions: DataFrame
    """Of audit.tables.PARTITION_EVENTS."""
    brokers: DataFrame
    """Of `silver.broker_events`."""
    privileged: DataFrame
    """Of audit.tables.PRIVILEGED."""


def watch(carried: Carried, happened: Happened, rules: AlertRules) -> tuple[Carried, list[Alert]]:
    """Return what is to be told now, and what must be remembered for it.

    `carried.horizon_ms` is that of the micro-batch's end.
    """
    alerts = list(_privileged(happened.privileged))
    fencings, flapping = _flapping(carried.fencings, happened.brokers, rules)
    lost, leaderless = _leaderless(carried, happened.partitions, rules)
    alerts += [*flapping, *leaderless]
    alerts.sort(key=lambda alert: (alert.time_ms, alert.offset, alert.kind, alert.subject))
    return msgspec.structs.replace(carried, fencings=fencings, lost=lost), alerts


def _privileged(events: DataFrame) -> Iterator[Alert]:
    columns = ("offset", "timestamp_ms", "kind", "subject", "principal", "operation")
    for offset, time_ms, kind, subject, principal, operation in events.select(*columns).collect():
        by = principal or "somebody"
        sentence = (
            f"{by} changed {subject} ({kind}) by {operation or 'an operation without a name'}"
        )
        yield Alert(PRIVILEGED, subject, offset, time_ms, sentence)


def _flapping(
    before: dict[str, tuple[int, ...]], events: DataFrame, rules: AlertRules
) -> tuple[dict[str, tuple[int, ...]], list[Alert]]:
    fenced = events.where((F.col("kind") == "changed") & F.col("fenced"))
    rows = sorted(fenced.select("offset", "broker_id", "settled_ms").collect())
    times = {broker: list(seen) for broker, seen in before.items()}
    alerts = []
    for offset, broker_id, time_ms in rows:
        seen = times.setdefault(str(broker_id), [])
        were = len(_within(seen, time_ms, rules))
        seen[:] = [*_within(seen, time_ms, rules), time_ms]
        if len(seen) >= rules.fencings > were:
            minutes = rules.fencing_window_ms / 60_000
            sentence = f"broker {broker_id} was fenced {len(seen)} times within {minutes:g} minutes"
            alerts.append(Alert(FLAPPING, f"broker:{broker_id}", offset, time_ms, sentence))
    return {broker: tuple(seen) for broker, seen in times.items()}, alerts


def _within(times: list[int], now_ms: int, rules: AlertRules) -> list[int]:
    return [time for time in times if time > now_ms - rules.fencing_window_ms]


def _leaderless(
    carried: Carried, events: DataFrame, rules: AlertRules
) -> tuple[tuple[Lost, ...], list[Alert]]:
    lost = {(one.topic_id, one.partition): one for one in carried.lost}
    alerts = []
    for row in _leader_rows(events, lost):
        key = (row.topic_id, row.partition)
        if row.kind != "removed" and row.leader == -1:
            lost.setdefault(
                key, Lost(*key, row.topic_name or row.topic_id, row.offset, row.settled_ms)
            )
        elif key in lost:
            one = lost.pop(key)
            if not one.told and row.settled_ms - one.since_ms >= rules.leaderless_ms:
                alerts.append(_told(one, rules))
    for key, one in lost.items():
        if not one.told and carried.horizon_ms - one.since_ms >= rules.leaderless_ms:
            alerts.append(_told(one, rules))
            lost[key] = msgspec.structs.replace(one, told=True)
    return tuple(lost.values()), alerts


class _LeaderRow(NamedTuple):
    offset: int
    topic_id: str
    partition: int
    topic_name: str | None
    settled_ms: int
    kind: str
    leader: int | None


def _leader_rows(events: DataFrame, lost: dict[tuple[str, int], Lost]) -> list[_LeaderRow]:
    """Return, in order, losses, and whatever may end a loss; the rest stays where it is."""
    rows = events.select(*_LeaderRow._fields)
    losses = rows.where((F.col("leader") == -1) & (F.col("kind") != "removed"))
    found = [_LeaderRow(*row) for row in losses.collect()]
    keys = sorted({*lost, *((row.topic_id, row.partition) for row in found)})
    if not keys:
        return []
    known = events.sparkSession.createDataFrame(keys, "topic_id string, partition bigint")
    gains = rows.where((F.col("leader") >= 0) | (F.col("kind") == "removed"))
    found += [
        _LeaderRow(*row)
        for row in gains.join(F.broadcast(known), ["topic_id", "partition"])
        .select(*_LeaderRow._fields)
        .collect()
    ]
    return sorted(found, key=lambda row: row.offset)


def _told(lost: Lost, rules: AlertRules) -> Alert:
    subject = f"partition:{lost.topic_name}-{lost.partition}"
    seconds = rules.leaderless_ms / 1000
    sentence = f"{subject} lost its leader and has had none for {seconds:g} s"
    due_ms = lost.since_ms + rules.leaderless_ms
    return Alert(LEADERLESS, subject, lost.offset, due_ms, sentence)
