"""The first page: what a manager reads, in words and in numbers.

Rule: every number stands again, with its detail, in a section below; a bad one is said first.
"""

from typing import NamedTuple

from audit.report.availability import Availability, partition_name
from audit.report.changes import Changes
from audit.report.facts import Facts
from audit.report.fencing import Fencing
from audit.report.integrity import Integrity
from audit.report.privileged import Privileged
from audit.report.transactions import Transactions
from audit.report.words import counted, duration, minute, number


class Tile(NamedTuple):
    """A number with its name; `tone` is `good`, `bad`, `warn` or empty."""

    value: str
    name: str
    detail: str
    tone: str
    anchor: str


class Sections(NamedTuple):
    """What the summary is drawn from."""

    integrity: Integrity
    changes: Changes
    availability: Availability
    fencing: Fencing
    privileged: Privileged
    transactions: Transactions


def tiles(sections: Sections) -> tuple[Tile, ...]:
    """Return the numbers, in the order of the page."""
    found = sections
    total = found.availability.total
    unclean = found.privileged.unclean
    return (
        Tile(
            number(found.changes.total),
            "changes",
            f"by {counted(found.changes.principals, 'principal')}",
            "",
            "changes",
        ),
        Tile(
            total.with_leader,
            "of partition-time with a leader",
            f"{duration(total.offline_ms)} without, in all",
            "bad" if total.offline_ms else "good",
            "availability",
        ),
        Tile(
            duration(total.under_min_isr_ms),
            "of partition-time under min ISR",
            f"{counted(found.availability.partitions, 'partition')} watched",
            "warn" if total.under_min_isr_ms else "good",
            "availability",
        ),
        Tile(
            number(total.leader_changes),
            "leader changes",
            f"{counted(unclean, 'unclean election')} among them",
            "bad" if unclean else "",
            "timelines",
        ),
        Tile(
            number(found.fencing.times),
            "times a broker was fenced" if found.fencing.times != 1 else "time a broker was fenced",
            f"{counted(found.fencing.brokers, 'broker')}",
            "warn" if found.fencing.times else "good",
            "fencing",
        ),
        Tile(
            number(found.privileged.total),
            "privileged changes" if found.privileged.total != 1 else "privileged change",
            f"by {counted(found.privileged.principals, 'principal')}",
            "",
            "privileged",
        ),
    )


def sentences(facts: Facts, sections: Sections) -> tuple[str, ...]:
    """Return the summary in words, the worst first."""
    found = sections
    said = [f"{found.integrity.verdict}. {found.integrity.sentence}"]
    said += _trouble(found)
    period = facts.period
    who, most = found.changes.busiest
    if found.changes.total:
        principals = counted(found.changes.principals, "principal")
        said.append(
            f"From {minute(period.from_ms)} to {minute(period.until_ms)} UTC "
            f"({duration(period.length_ms)}), {principals} made "
            f"{counted(found.changes.total, 'change')}; {who} made most, {number(most)}."
        )
    else:
        said.append(f"Nothing changed in the {duration(period.length_ms)} of this report.")
    said.append(
        f"{counted(found.privileged.total, 'privileged change')} touched rights, credentials, "
        "features, voters, quotas or unclean elections."
        if found.privileged.total
        else "No privileged change was made."
    )
    return tuple(said)


def _trouble(found: Sections) -> list[str]:
    said = []
    if found.privileged.unclean:
        said.append(
            f"{counted(found.privileged.unclean, 'unclean election')}: a leader that was not in "
            "sync was elected, and what had been written to that partition may be lost."
        )
    if found.privileged.allowed:
        said.append(
            f"Whether unclean elections are allowed was set "
            f"{counted(found.privileged.allowed, 'time')}."
        )
    worst = found.availability.worst
    if worst is not None and worst[1].offline_ms:
        key, standing = worst
        said.append(
            f"{counted(found.availability.offline_partitions, 'partition')} of "
            f"{number(found.availability.partitions)} had no leader at some time; the worst, "
            f"{partition_name(key)}, for {duration(standing.offline_ms)}."
        )
    elif found.availability.partitions:
        said.append("Every partition had a leader all the time.")
    if found.transactions.open:
        said.append("A transaction is open at the end: its records are no state yet.")
    return said
