"""The summary: what a manager reads, in sentences and in numbers.

Rule: every number appears again with its detail in a section below. Bad news comes first.
"""

from typing import NamedTuple

from audit.report.attempts import AttemptsSection
from audit.report.availability import Availability
from audit.report.changes import ChangesSection
from audit.report.facts import Facts
from audit.report.fencing import FencingSection
from audit.report.integrity import Integrity
from audit.report.privileged import NOUNS, PrivilegedSection
from audit.report.transactions import Transactions
from audit.report.words import counted, duration, listed, number


class Tile(NamedTuple):
    """A number with its name; `tone` is `bad`, `warn` or empty."""

    value: str
    name: str
    detail: str
    tone: str
    anchor: str


class Sections(NamedTuple):
    """The sections that the summary is made from."""

    integrity: Integrity
    changes: ChangesSection
    availability: Availability
    fencing: FencingSection
    privileged: PrivilegedSection
    transactions: Transactions
    attempts: AttemptsSection


def tiles(sections: Sections) -> tuple[Tile, ...]:
    """Return the numbers in the order of the page."""
    total = sections.availability.total
    under = total.under_min_isr_ms - sections.availability.never_enough_ms
    never = counted(sections.availability.never_enough, "partition")
    unclean = sections.privileged.unclean
    people, times = sections.changes.people, sections.fencing.times
    return (
        Tile(
            number(people.total),
            "changes by people and services" if people.total != 1 else "change by a person",
            f"{counted(people.principals, 'principal')}; the cluster itself made "
            f"{number(sections.changes.cluster.total)}",
            "",
            "changes",
        ),
        Tile(
            total.with_leader,
            "of partition-time with a leader",
            f"{duration(total.offline_ms)} without, in all",
            "bad" if total.offline_ms else "",
            "availability",
        ),
        Tile(
            duration(under),
            "of partition-time under min ISR",
            f"besides {never} that always were" if sections.availability.never_enough else "in all",
            "warn" if under else "",
            "availability",
        ),
        _elections(unclean, total.leader_changes),
        Tile(
            number(times),
            "times a broker was fenced" if times != 1 else "time a broker was fenced",
            f"{counted(sections.fencing.brokers, 'broker')} in all",
            "warn" if times else "",
            "fencing",
        ),
        Tile(
            number(sections.privileged.total),
            "privileged changes" if sections.privileged.total != 1 else "privileged change",
            f"by {counted(sections.privileged.principals, 'principal')}",
            "",
            "privileged",
        ),
    )


def _elections(unclean: int, moved: int) -> Tile:
    """Return the tile of leader changes; of unclean elections if there was one."""
    if not unclean:
        name = "leader change" if moved == 1 else "leader changes"
        return Tile(number(moved), name, "no unclean election", "", "timelines")
    name = "unclean election" if unclean == 1 else "unclean elections"
    detail = f"among {counted(moved, 'leader change')}"
    return Tile(number(unclean), name, detail, "bad", "privileged")


def sentences(facts: Facts, sections: Sections) -> tuple[str, ...]:
    """Return the summary in sentences, the worst first."""
    said = _trouble(sections)
    period = facts.period
    people, cluster = sections.changes.people, sections.changes.cluster
    if people.total:
        who, most = people.busiest
        busiest = f"; {who} made most, {number(most)}" if people.principals > 1 else ""
        all_of_them = counted(people.principals, "person or service", "people and services")
        said.append(
            f"In {duration(period.length_ms)}, {all_of_them} made "
            f"{counted(people.total, 'change')}{busiest}. "
            f"Brokers and controllers made {number(cluster.total)}."
        )
    else:
        said.append(
            f"No person and no service changed anything in {duration(period.length_ms)}. Brokers "
            f"and controllers made {counted(cluster.total, 'change')}."
        )
    kinds = sections.privileged.kinds
    named = [f"{number(kinds[kind])} of {noun}" for kind, noun in NOUNS.items() if kinds[kind]]
    said.append(
        f"{counted(sections.privileged.total, 'privileged change')}: {listed(named)}."
        if named
        else "No privileged change was made."
    )
    if sections.attempts.total:
        said.append(f"Refused attempts: {sections.attempts.sentence}")
    return tuple(said)


def _trouble(found: Sections) -> list[str]:
    said = []
    if found.privileged.unclean:
        said.append(
            f"{counted(found.privileged.unclean, 'unclean election')}: the cluster elected a "
            "leader that was not in sync. Data of that partition may be lost."
        )
    if found.privileged.allowed:
        times = counted(found.privileged.allowed, "change")
        said.append(f"{times} of the setting that allows unclean elections.")
    worst = found.availability.worst
    if worst is not None and worst[1].offline_ms:
        name, leadership = worst
        said.append(
            f"{counted(found.availability.offline_partitions, 'partition')} of "
            f"{number(found.availability.partitions)} had no leader at some time. The worst was "
            f"{name}, for {duration(leadership.offline_ms)}."
        )
    elif found.availability.partitions:
        said.append("Every partition had a leader all the time.")
    if found.availability.never_enough:
        said.append(
            f"{counted(found.availability.never_enough, 'partition')} never had as many in-sync "
            "replicas as min.insync.replicas requires. They probably have too few replicas."
        )
    if found.transactions.open:
        said.append("A transaction is open at the end. Its records don't count yet.")
    return said
