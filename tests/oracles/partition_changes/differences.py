"""Where we mean to differ from Kafka, why, and in what.

Rule: a difference is excused only if Kafka's answer breaks a rule that partitions follow, and then
only in the fields that hang on that rule. Everything else must be equal. Each difference has a case
in `test_differences.py`, and the comparison counts how often each was met.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from metadata.image.partition import Partition
from metadata.records import NO_LEADER, LeaderRecoveryState
from tests.oracles.partition_changes.lines import Case, Ids

LEADER: Final = "leader"
ISR: Final = "isr"
ELR: Final = "eligible_leader_replicas"
LAST: Final = "last_known_elr"
RECOVERY: Final = "leader_recovery_state"
_OF_ASSIGNMENTS: Final = frozenset(
    {"replicas", "removing_replicas", "adding_replicas", "directories"}
)
_OF_ELECTIONS: Final = frozenset({LEADER, ISR, ELR, LAST, RECOVERY})


class Difference(NamedTuple):
    """One kind of difference."""

    name: str
    reason: str
    applies: Callable[[Case, Partition, Partition], bool]
    """Of a case, Kafka's partition behind it and ours: is this why they differ?"""
    fields: frozenset[str]
    """The fields of the record in which our answer may differ."""


def excused(
    case: Case, kafka: Partition, our: Partition, differing: Sequence[str]
) -> tuple[Difference, ...]:
    """Return the differences that explain all of these fields; empty if they don't."""
    found = [one for one in DIFFERENCES if one.applies(case, kafka, our)]
    for one in found:
        if one.fields >= {*differing}:
            return (one,)
    known = {field for one in found for field in one.fields}
    return tuple(found) if known >= {*differing} else ()


def _wanted_isr(case: Case) -> Ids:
    isr = case.change.target.isr
    return case.partition.isr if isr is None else isr


def _elects_the_dead(case: Case, kafka: Partition, our: Partition) -> bool:
    leader = kafka.leader
    may_lead = leader in case.change.alive and leader in kafka.replicas
    return leader not in (NO_LEADER, case.partition.leader) and not may_lead


def _has_strangers_in_elr(case: Case, kafka: Partition, our: Partition) -> bool:
    strangers = {*kafka.elr} - {*kafka.replicas}
    return bool(strangers) and {*our.elr} == {*kafka.elr} - strangers


def _has_only_strangers_in_elr(case: Case, kafka: Partition, our: Partition) -> bool:
    partition, change = case
    eligible = {*partition.isr, *partition.elr} - {*change.lost}
    blocks = change.rules.elr and not _wanted_isr(case) and bool(eligible)
    return blocks and not eligible & {*kafka.replicas}


def _leads_outside_the_isr(case: Case, kafka: Partition, our: Partition) -> bool:
    found_again = NO_LEADER != kafka.leader == case.partition.leader
    return found_again and kafka.leader not in _wanted_isr(case)


def _remembers_nobody(case: Case, kafka: Partition, our: Partition) -> bool:
    return NO_LEADER in kafka.last_known_elr


def _recovered_uncleanly(case: Case, kafka: Partition, our: Partition) -> bool:
    return (
        case.change.target.recovery_state == LeaderRecoveryState.RECOVERED
        and kafka.leader not in (NO_LEADER, *_wanted_isr(case))
        and kafka.leader_recovery_state == LeaderRecoveryState.RECOVERED
        and our.leader_recovery_state == LeaderRecoveryState.RECOVERING
    )


def _elects_from_an_old_elr(case: Case, kafka: Partition, our: Partition) -> bool:
    return not case.change.rules.elr and kafka.leader in case.partition.elr


def _keeps_an_elr_beside_enough(case: Case, kafka: Partition, our: Partition) -> bool:
    enough = len(kafka.isr) >= case.change.rules.min_isr
    return enough and bool(kafka.elr) and kafka.isr == our.isr and not our.elr


def _adds_what_leaves(case: Case, kafka: Partition, our: Partition) -> bool:
    return bool(case.change.asked) and bool({*kafka.adding} & {*kafka.removing})


DIFFERENCES: Final = (
    Difference(
        "a dead last known leader",
        "Kafka elects the last known leader without asking whether its broker is alive and still "
        "has a replica. The partition then has a leader that nobody can reach. Ours stays "
        "without a leader, or elects another one if unclean elections are on.",
        _elects_the_dead,
        _OF_ELECTIONS,
    ),
    Difference(
        "an ELR beside an ISR that is enough",
        "Kafka keeps the other members of the ELR when one is elected from it, also if min ISR was "
        "lowered meanwhile and the new leader alone may take writes. The others miss these "
        "writes, and Kafka would later elect one of them as if nothing were lost.",
        _keeps_an_elr_beside_enough,
        frozenset({ELR}),
    ),
    Difference(
        "strangers in the ELR",
        "In Kafka a replica that leaves by a completing reassignment can enter the ELR. Its broker "
        "deletes the data, so it must not be eligible.",
        _has_strangers_in_elr,
        frozenset({ELR}),
    ),
    Difference(
        "an ELR of strangers only",
        "As above, and Kafka elects no last known leader while the ELR is not empty. So nobody can "
        "be elected any more, or only uncleanly. Ours leaves the strangers out first.",
        _has_only_strangers_in_elr,
        _OF_ELECTIONS,
    ),
    Difference(
        "a leader outside the ISR",
        "Kafka takes 'the election found the present leader' for 'nothing changes', even if that "
        "leader is not in the target ISR. Then a leader leads that is not in sync. Ours puts it "
        "into the ISR, as after any other election. No manager asks for such a target.",
        _leads_outside_the_isr,
        _OF_ELECTIONS,
    ),
    Difference(
        "nobody is the last known leader",
        "Kafka remembers -1 if a partition without a leader loses a replica.",
        _remembers_nobody,
        frozenset({LAST}),
    ),
    Difference(
        "recovered by an unclean election",
        "Kafka writes the recovery state that the caller asks for last, also over the RECOVERING "
        "of an unclean election. Then nobody would know that writes may be lost.",
        _recovered_uncleanly,
        frozenset({RECOVERY}),
    ),
    Difference(
        "an ELR from before",
        "With the feature off, Kafka still elects from an ELR that is left over. Brokers no longer "
        "keep its members safe. Both controllers empty every ELR when the feature is switched off, "
        "so neither meets this.",
        _elects_from_an_old_elr,
        _OF_ELECTIONS,
    ),
    Difference(
        "added and removed at once",
        "In Kafka a replica that an overlapping reassignment drops stays in the list of those that "
        "are being added. The reassignment then waits until that replica is in sync, and it is to "
        "leave. Ours takes it off the list, so that the reassignment can end.",
        _adds_what_leaves,
        _OF_ELECTIONS | _OF_ASSIGNMENTS,
    ),
)
