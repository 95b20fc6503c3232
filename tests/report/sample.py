"""Facts of an invented month, built by hand, so that a test knows what the page must show.

Rule: names that users choose are hostile here. A page that shows them as markup is noticed.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from audit.findings.finding import Finding
from audit.findings.rule_files import builtin_rules
from audit.findings.rules import Severity
from audit.report.details import RecordAt
from audit.report.facts import (
    ChangeSum,
    Facts,
    HistoryTables,
    Row,
    ShownRecord,
    VerifiedReplica,
    VerifiedReplicas,
)
from audit.report.period import Period
from audit.report.words import DAY_MS, HOUR_MS, MINUTE_MS, day_ms, day_of
from audit.tables import BOOL, BY_NAME, INT, INTS, TEXT

BEGIN_MS = day_ms("2026-10-20")
END_MS = BEGIN_MS + 30 * DAY_MS + 5 * HOUR_MS
PERIOD = Period(BEGIN_MS, END_MS)
HOSTILE = "User:<script>alert('p')</script>"
REASON = '<img src="http://example.com/x" onerror="alert(1)"> & "so" </td>'
HEAD = "ab" * 32
TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"
OTHER_TOPIC = "BAAAAAAAAAAAAAAAAAAAAQ"
PRINCIPALS = (
    "User:terraform",
    "Controller:1",
    "User:ana",
    HOSTILE,
    "User:deploy-bot",
    "Broker:3",
    "User:kim",
    "User:jo",
    "User:lee",
)


def row(name: str, **values: Any) -> tuple[Any, ...]:
    """A row of a table by its columns' names; what isn't named is empty."""
    empty = {TEXT: "", INT: 0, INTS: (), BOOL: False}
    columns = BY_NAME[name].columns
    assert values.keys() <= {column.name for column in columns}
    return tuple(
        values.get(column.name, None if column.nullable else empty[column.kind])
        for column in columns
    )


def changed(**values: Any) -> ChangeSum:
    """A sum of changes; what isn't named is empty."""
    empty = ChangeSum("", "", "", "", "", "", 0, 0, 0, 0, 0)
    return empty._replace(**values)


def changes(seed: int = 1) -> list[ChangeSum]:
    """Every principal on every day, fewer at week-ends; bookkeeping, which isn't to be drawn."""
    dice = random.Random(seed)
    rows = []
    for day in range(31):
        begin = BEGIN_MS + day * DAY_MS
        quiet = 4 if (begin // DAY_MS + 4) % 7 in {0, 6} else 1
        for place, principal in enumerate(PRINCIPALS):
            number = dice.randint(1, 180) // (1 + place) // quiet
            if number:
                rows.append(
                    changed(
                        day=day_of(begin),
                        principal=principal,
                        auth_method="certificate",
                        client_address=f"10.0.9.{place}",
                        operation="AlterConfigs",
                        type="CONFIG_RECORD",
                        records=number,
                        first_offset=day * 1_000 + place * 10,
                        last_offset=day * 1_000 + place * 10 + number - 1,
                        first_ms=begin + HOUR_MS,
                        last_ms=begin + 20 * HOUR_MS,
                        offsets=tuple(day * 1_000 + place * 10 + n for n in range(min(6, number))),
                    )
                )
        rows.append(
            changed(
                day=day_of(begin),
                principal="Controller:1",
                type="REQUEST_OUTCOME_RECORD",
                records=7,
            )
        )
    return rows


def partition_intervals(partitions: int = 20) -> list[tuple[Any, ...]]:
    """Partition 0 was without leader for 90 minutes on the 6th day; all move now and then."""
    rows = []
    for partition in range(partitions):
        steps = _steps(partition, partitions)
        for place, (from_ms, leader, isr) in enumerate(steps):
            last = place + 1 == len(steps)
            rows.append(
                row(
                    "partition_intervals",
                    topic_id=TOPIC,
                    partition=partition,
                    from_offset=10 * place,
                    topic_name="orders",
                    until_offset=None if last else 10 * place + 10,
                    from_ms=from_ms,
                    until_ms=None if last else steps[place + 1][0],
                    leader=leader,
                    isr=isr,
                    replicas=_replicas(partition),
                    min_isr=2,
                    offline=leader < 0,
                    under_min_isr=len(isr) < 2,
                )
            )
    return rows


def _replicas(partition: int) -> tuple[int, ...]:
    return tuple((partition + n) % 6 for n in range(3))


def _steps(partition: int, partitions: int) -> list[tuple[int, int, tuple[int, ...]]]:
    dice = random.Random(partition)
    replicas = _replicas(partition)
    at = BEGIN_MS - DAY_MS
    steps = [(at, replicas[0], replicas)]
    for _ in range(2 + 3 * (partitions - partition)):
        at += dice.randint(2 * HOUR_MS, 31 * DAY_MS // (2 + 3 * partitions))
        away = dice.choice(replicas)
        isr = tuple(each for each in replicas if each != away)
        steps.append((at, isr[0], isr))
        steps.append((at + dice.randint(1, 300) * MINUTE_MS, replicas[0], replicas))
    if partition == 0:
        trouble = BEGIN_MS + 5 * DAY_MS
        steps = [step for step in steps if not trouble <= step[0] <= trouble + 2 * HOUR_MS]
        steps += [
            (trouble, replicas[0], replicas[:1]),
            (trouble + 10 * MINUTE_MS, -1, replicas[:1]),
            (trouble + 100 * MINUTE_MS, replicas[0], replicas),
        ]
    return [step for step in sorted(steps) if step[0] < END_MS]


def broker_intervals(brokers: int = 6) -> list[tuple[Any, ...]]:
    """Broker 3 flaps for two days; broker 5 comes on the tenth day; 1 and 2 are restarted."""
    rows: list[tuple[Any, ...]] = []
    for broker in range(brokers):
        steps = [(BEGIN_MS - DAY_MS if broker != 5 else BEGIN_MS + 9 * DAY_MS, "online")]
        if broker == 3:
            for n in range(24):
                at = BEGIN_MS + 12 * DAY_MS + n * 2 * HOUR_MS
                steps += [(at, "fenced"), (at + (5 + 3 * n) * MINUTE_MS, "online")]
        if broker in {1, 2}:
            at = BEGIN_MS + (6 + broker) * DAY_MS
            steps += [(at, "stopping"), (at + MINUTE_MS, "fenced"), (at + 9 * MINUTE_MS, "online")]
        for place, (from_ms, state) in enumerate(steps):
            until_ms = steps[place + 1][0] if place + 1 < len(steps) else None
            rows.append(
                row(
                    "broker_intervals",
                    broker_id=broker,
                    from_offset=place,
                    until_offset=None if until_ms is None else place + 1,
                    from_ms=from_ms,
                    until_ms=until_ms,
                    state=state,
                )
            )
    return rows


def hurt(partitions: int = 40) -> list[tuple[Any, ...]]:
    """Partitions of `payments`, there from the begin: ten were without leader on the sixth day,
    9 minutes more each than the one after it; fourteen under min ISR for 40 minutes on the 13th.
    """
    rows = []
    for partition in range(partitions):
        spans: list[tuple[int, int, tuple[int, ...]]] = [(BEGIN_MS, 1, (1, 2))]
        sixth, thirteenth = BEGIN_MS + 5 * DAY_MS, BEGIN_MS + 12 * DAY_MS
        if partition < 10:
            spans += [(sixth, -1, (1, 2)), (sixth + (10 - partition) * 9 * MINUTE_MS, 2, (1, 2))]
        if partition < 14:
            spans += [(thirteenth, 2, (2,)), (thirteenth + 40 * MINUTE_MS, 2, (1, 2))]
        for place, (from_ms, leader, isr) in enumerate(spans):
            last = place + 1 == len(spans)
            rows.append(
                row(
                    "partition_intervals",
                    topic_id=OTHER_TOPIC,
                    partition=partition,
                    from_offset=place,
                    topic_name="payments",
                    from_ms=from_ms,
                    until_ms=None if last else spans[place + 1][0],
                    leader=leader,
                    isr=isr,
                    replicas=(1, 2),
                    min_isr=2,
                    offline=leader < 0,
                    under_min_isr=len(isr) < 2,
                )
            )
    return rows


def privileged() -> list[tuple[Any, ...]]:
    """Nine changes; one unclean election; hostile names and reasons."""
    kinds = ["acl", "acl", "user", "token", "unclean_election", "feature", "quota", "acl", "voters"]
    rows = []
    for place, kind in enumerate(kinds):
        at = BEGIN_MS + (3 * place + 1) * DAY_MS + 7 * HOUR_MS
        rows.append(
            row(
                "privileged",
                offset=place * 100,
                timestamp_ms=at,
                day=day_of(at),
                kind=kind,
                subject=f"{kind}:payments-{place}",
                principal=HOSTILE if place == 2 else "User:ana",
                on_behalf_of="User:kim" if place == 1 else "",
                auth_method="token",
                client_address="10.9.77.3",
                operation="CreateAcls",
                reason=REASON if place == 2 else f"CHG-40{place}: access for the payments team",
                fields='{"name":"payments","salt":"***","storedKey":"***"}',
            )
        )
    return rows


def finding(offset: int, **more: Any) -> Finding:
    """A finding of one record; what isn't named is that of a stolen identity."""
    made = Finding(
        id=f"stolen_identity@{offset}",
        rule="stolen_identity",
        severity=Severity.CRITICAL,
        subject="acl:1",
        offset=offset,
        time_ms=BEGIN_MS + 5 * DAY_MS,
        principal=HOSTILE,
        on_behalf_of="",
        auth_method="token",
        address="10.9.77.3",
        acted_as="",
        operation="CreateAcls",
        reason=REASON,
        sentence=f"{HOSTILE} came from where it never was.",
        count=1,
        offsets=(offset,),
        until_ms=BEGIN_MS + 5 * DAY_MS,
        open=False,
        rank=0,
    )
    return msgspec.structs.replace(made, **more)


def findings() -> list[Finding]:
    """One critical finding of five records, eight high ones, three low ones."""
    high = {"severity": Severity.HIGH, "rule": "access_widened", "principal": "User:ana"}
    low = {"severity": Severity.LOW, "rule": "access_widened", "auth_method": "", "address": ""}
    return [
        finding(70, offsets=(70, 71, 72, 75, 79), count=5),
        *(finding(100 + n, sentence=f"high {n}", **high) for n in range(8)),
        *(finding(200 + n, sentence=f"low {n}", **low) for n in range(3)),
    ]


def log() -> list[tuple[Any, ...]]:
    """Two aborted transactions, of 3 and 4 records, and an open one of 2."""
    rows = []
    at = BEGIN_MS + 4 * DAY_MS
    for records, outcome in ((3, "aborted"), (4, "aborted"), (2, "open")):
        for place in range(records):
            rows.append(
                row(
                    "log",
                    offset=500 + len(rows),
                    timestamp_ms=at + place * MINUTE_MS,
                    principal="User:deploy-bot",
                    operation="CreateTopics",
                    reason=REASON,
                    type="BEGIN_TRANSACTION_RECORD" if place == 0 else "TOPIC_RECORD",
                    outcome=outcome,
                )
            )
        at += DAY_MS
    return rows


def replica(name: str, **more: Any) -> VerifiedReplica:
    """A sound replica."""
    found = VerifiedReplica(
        name,
        f"/var/lib/logberg/{name}",
        4,
        24_985,
        500_123,
        0,
        500_123,
        HEAD,
        log_is_sound=True,
        checkpoints=3,
        proved=3,
        state_hash="cd" * 32,
        replayed_to=500_123,
    )
    return found._replace(**more)


class SampleHistory:
    """A history whose rows are given."""

    def __init__(self, tables: HistoryTables, intervals: Iterable[Row]) -> None:
        self._tables = tables
        self._intervals = intervals

    def read(self, on_interval: Callable[[Row], None]) -> HistoryTables:
        """Give all intervals, then the tables."""
        for each in self._intervals:
            on_interval(each)
        return self._tables

    def records(self, places: Sequence[RecordAt]) -> list[ShownRecord]:
        """Records whose caller and reason are hostile."""
        return [
            ShownRecord(
                place.offset,
                BEGIN_MS + place.offset,
                f"{HOSTILE} (token from 10.9.77.3)",
                "CreateAcls",
                "ACCESS_CONTROL_ENTRY_RECORD",
                place.subject,
                REASON,
            )
            for place in places
        ]


def attempts(count: int = 70) -> list[Row]:
    """Refused attempts of a hostile user, of nobody, and one that was only logged."""
    rows = [
        row(
            "attempts",
            offset=300_000 + number,
            timestamp_ms=BEGIN_MS + number * HOUR_MS,
            outcome="refused",
            principal=HOSTILE if number % 2 else "",
            auth_method="token",
            operation="create_topics" if number % 2 else "login",
            resource=f"topic:t-{number % 7}",
            client_address="203.0.113.9",
            code="TOPIC_AUTHORIZATION_FAILED",
            reason=REASON,
            count=number + 1,
            first_ms=BEGIN_MS + number * HOUR_MS - MINUTE_MS,
            last_ms=BEGIN_MS + number * HOUR_MS,
        )
        for number in range(count)
    ]
    passed = row("attempts", offset=400_000, timestamp_ms=BEGIN_MS, outcome="would_be_refused")
    accepted = row("attempts", offset=400_001, timestamp_ms=BEGIN_MS, outcome="accepted")
    return [*rows, (*passed[:12], 5, *passed[13:]), (*accepted[:12], 9, *accepted[13:])]


def facts(**more: Any) -> Facts:
    """All of it; what is named replaces what is there: a field of `Facts`, or rows of a table."""
    replicas = tuple(replica(f"controller-{n}") for n in (1, 2, 3))
    tables = HistoryTables(
        more.pop("unsettled", log()),
        more.pop("broker_intervals", broker_intervals()),
        more.pop("changes", changes()),
        more.pop("privileged", privileged()),
        more.pop("findings", findings()),
        more.pop("attempts", attempts()),
    )
    intervals = more.pop("partition_intervals", [*partition_intervals(), *hurt()])
    made = Facts(
        title="Audit of the orders cluster",
        made_ms=END_MS + DAY_MS,
        period=PERIOD,
        end_offset=500_123,
        answered_by="/var/lib/logberg/controller-1",
        verified=VerifiedReplicas("Yb0k9pWTR7mAtn4m6f6pHw", replicas, 500_123, ""),
        history=SampleHistory(tables, intervals),
        integrity=[],
        divergence=[],
        where="/var/lib/logberg",
        rules=builtin_rules().rules,
    )
    return made._replace(**more)


def span(partition: int, from_ms: int, until_ms: int | None, **more: Any) -> tuple[Any, ...]:
    """An interval of a partition of `topic`."""
    return row(
        "partition_intervals",
        topic_id="t",
        partition=partition,
        topic_name="topic",
        from_ms=from_ms,
        until_ms=until_ms,
        **more,
    )
