"""Facts of a made-up month, built by hand: what a page must show, known before it is made.

Rule: names that users choose are hostile here; a page that shows them as markup is found.
"""

import random
from typing import Any

from audit.report.facts import Facts, Verified, VerifiedReplica
from audit.report.period import Period
from audit.report.words import DAY_MS, HOUR_MS, MINUTE_MS, day_ms, day_of

BEGIN_MS = day_ms("2026-10-20")
END_MS = BEGIN_MS + 30 * DAY_MS + 5 * HOUR_MS
PERIOD = Period(BEGIN_MS, END_MS)
HOSTILE = "User:<script>alert('p')</script>"
REASON = '<img src="http://example.com/x" onerror="alert(1)"> & "so" </td>'
HEAD = "ab" * 32
TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"
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


def changes(seed: int = 1) -> list[tuple[Any, ...]]:
    """Every principal on every day, fewer at week-ends."""
    dice = random.Random(seed)
    rows = []
    for day in range(31):
        begin = BEGIN_MS + day * DAY_MS
        quiet = 4 if (begin // DAY_MS + 4) % 7 in {0, 6} else 1
        for place, principal in enumerate(PRINCIPALS):
            number = dice.randint(1, 180) // (1 + place) // quiet
            if number:
                rows.append(
                    (day_of(begin), principal, "ALTER_CONFIGS", "CONFIG_RECORD", number)
                    + (day * 1000, day * 1000 + 900, begin + HOUR_MS, begin + 20 * HOUR_MS)
                )
        rows.append(
            (day_of(begin), "Controller:1", "", "REQUEST_OUTCOME_RECORD", 7, 0, 1, begin, begin)
        )
    return rows


def partition_intervals(partitions: int = 20) -> list[tuple[Any, ...]]:
    """Partition 0 was without leader for 90 minutes on the 6th day; all move now and then."""
    rows = []
    for partition in range(partitions):
        dice = random.Random(partition)
        at, offset = BEGIN_MS - DAY_MS, 0
        replicas = tuple((partition + n) % 6 for n in range(3))
        steps = [(at, replicas[0], replicas)]
        for _ in range(2 + 3 * (partitions - partition)):
            at += dice.randint(2 * HOUR_MS, 31 * DAY_MS // (2 + 3 * partitions))
            away = dice.choice(replicas)
            isr = tuple(each for each in replicas if each != away)
            steps.append((at, isr[0], isr))
            steps.append((at + dice.randint(1, 300) * MINUTE_MS, replicas[0], replicas))
        steps = [step for step in sorted(steps) if step[0] < END_MS]
        if partition == 0:
            trouble = BEGIN_MS + 5 * DAY_MS
            cut = [step for step in steps if not trouble <= step[0] <= trouble + 2 * HOUR_MS]
            extra = [
                (trouble, replicas[0], replicas[:1]),
                (trouble + 10 * MINUTE_MS, -1, replicas[:1]),
                (trouble + 100 * MINUTE_MS, replicas[0], replicas),
            ]
            steps = sorted([*cut, *extra])
        for place, (from_ms, leader, isr) in enumerate(steps):
            last = place + 1 == len(steps)
            offset += 10
            rows.append(
                (TOPIC, partition, offset, "orders", None if last else offset + 10, from_ms)
                + (None if last else steps[place + 1][0], leader, isr, replicas, 2)
                + (leader < 0, len(isr) < 2)
            )
    return rows


def broker_intervals(brokers: int = 6) -> list[tuple[Any, ...]]:
    """Broker 3 flaps for two days; broker 5 comes on the tenth day; the others stay online."""
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
            until = steps[place + 1][0] if place + 1 < len(steps) else None
            rows.append((broker, place * 10, None if until is None else place, from_ms, until, state))
    return rows


def availability(partitions: int = 40) -> list[tuple[Any, ...]]:
    """Each partition is there all days; the first ten were hurt, partition 0 most."""
    rows: list[tuple[Any, ...]] = []
    for partition in range(partitions):
        for day in range(31):
            offline = (10 - partition) * 9 * MINUTE_MS if day == 5 and partition < 10 else 0
            under = 40 * MINUTE_MS if day in {5, 12, 13} and partition < 14 else 0
            rows.append(
                ("partition", f"orders-{partition}@{TOPIC}", day_of(BEGIN_MS + day * DAY_MS))
                + (DAY_MS, offline, under, 0, 2 if offline else 0)
            )
    rows.append(("broker", "3", day_of(BEGIN_MS), DAY_MS, 0, 0, HOUR_MS, 0))
    return rows


def privileged() -> list[tuple[Any, ...]]:
    """Nine changes; one unclean election; hostile names and reasons."""
    kinds = ["acl", "acl", "user", "token", "unclean_election", "feature", "quota", "acl", "voters"]
    rows: list[tuple[Any, ...]] = []
    for place, kind in enumerate(kinds):
        at = BEGIN_MS + (3 * place + 1) * DAY_MS + 7 * HOUR_MS
        who = HOSTILE if place == 2 else "User:ana"
        why = REASON if place == 2 else "CHG-40%d: access for the payments team" % place
        rows.append(
            (place * 100, at, day_of(at), kind, f"{kind}:payments-{place}", who)
            + ("User:kim" if place == 1 else "", f"req-{place}", "CREATE_ACLS", why)
            + ('{"name":"payments","salt":"***","storedKey":"***"}',)
        )
    return rows


def log() -> list[tuple[Any, ...]]:
    """Two aborted transactions, of 3 and 4 records, and an open one of 2."""
    rows = []
    at = BEGIN_MS + 4 * DAY_MS
    offset = 500
    for records, outcome in ((3, "aborted"), (4, "aborted"), (2, "open")):
        for place in range(records):
            kind = "BEGIN_TRANSACTION_RECORD" if place == 0 else "TOPIC_RECORD"
            rows.append(
                (offset, at, day_of(at), 3, offset, "tls", "10.0.0.7", "cli", "User:deploy-bot")
                + ("", "req-9", "CREATE_TOPICS", REASON, kind, 0, outcome)
                + (None, None, None, None, None, None, None, "{}")
            )
            offset += 1
            at += MINUTE_MS
        at += DAY_MS
    return rows


def replica(name: str, **more: Any) -> VerifiedReplica:
    """A sound replica."""
    found = VerifiedReplica(
        name, f"/var/lib/quorate/{name}", 4, 24_985, 500_123, 22_600_000, 0, 500_123, HEAD, "", ()
    )
    return found._replace(**more)


def facts(**more: Any) -> Facts:
    """All of it; what is named replaces what is there."""
    replicas = tuple(replica(f"controller-{n}") for n in (1, 2, 3))
    made = Facts(
        title="Audit of the orders cluster",
        made_ms=END_MS + DAY_MS,
        period=PERIOD,
        end_offset=500_123,
        answered_by="/var/lib/quorate/controller-1",
        verified=Verified("Yb0k9pWTR7mAtn4m6f6pHw", replicas, 500_123, ""),
        log=log(),
        partition_intervals=partition_intervals(),
        broker_intervals=broker_intervals(),
        availability=availability(),
        changes=changes(),
        privileged=privileged(),
        integrity=[],
        divergence=[],
    )
    return made._replace(**more)
