"""Mutants of the rules of a partition: reassignment, ELR, election, epochs.

Each is one rule of `controller/managers/partition_change.py` broken by hand. The table of Kafka's
answers (`tests/oracles/partition_changes`) kills all but one, where we differ from Kafka.
"""

from typing import Final

from tests.mutants.mutant import Mutant
from tests.mutants.patches import Patch, edited, gives

_RULES: Final = "controller.managers.partition_change"


def _mutant(name: str, without: str, function: str, old: str, new: str) -> Mutant:
    patch = Patch(f"{_RULES}.{function}", edited((old, new)))
    return Mutant(name, "17", without, (patch,))


ELECTING = (
    _mutant(
        "completed before the added replicas are in sync",
        "A reassignment is over at once, and its data may be nowhere.",
        "_completed",
        "not {*wanted.adding, *needed} <= {*isr}",
        "False",
    ),
    _mutant(
        "completed with fewer copies than asked for",
        "A reassignment that shrinks does not wait for the replicas that stay.",
        "_completed",
        "if len(wanted.adding) >= len(wanted.removing) else replicas",
        "if True else replicas",
    ),
    _mutant(
        "a dead replica holds up a reassignment",
        "Every replica that stays must be in sync, as before Kafka 4.3.",
        "_completed",
        "wanted.adding if len(wanted.adding) >= len(wanted.removing) else replicas",
        "replicas",
    ),
    _mutant(
        "completed with an empty ISR",
        "A reassignment takes the last in-sync replica away.",
        "_completed",
        "not isr or not replicas or ",
        "",
    ),
    _mutant(
        "removed replicas stay in the ISR",
        "A reassignment ends, and the ISR keeps who left.",
        "_completed",
        "_Assignment(isr, replicas, (), ())",
        "_Assignment(wanted.isr, replicas, (), ())",
    ),
    _mutant(
        "an ELR beside an ISR of the minimum",
        "The ELR is kept up to one replica more than the minimum.",
        "_eligible",
        "len(wanted.isr) >= rules.min_isr",
        "len(wanted.isr) > rules.min_isr",
    ),
    _mutant(
        "eligible after an unclean shutdown",
        "A replica that may have lost writes enters the ELR.",
        "_eligible",
        " - {*unclean_shutdown}",
        "",
    ),
    _mutant(
        "in sync and eligible",
        "A replica of the ISR stays in the ELR.",
        "_eligible",
        " - {*wanted.isr}",
        "",
    ),
    _mutant(
        "who leaves the ISR is not eligible",
        "The ELR gets no new members.",
        "_eligible",
        "{*partition.elr, *partition.isr}",
        "{*partition.elr}",
    ),
    _mutant(
        "a stranger is eligible",
        "A replica that leaves by a reassignment enters the ELR, as in Kafka.",
        "_eligible",
        "eligible & {*wanted.replicas}",
        "eligible",
    ),
    _mutant(
        "elected from the ELR beside an ISR",
        "ELR members may lead although the ISR is not empty.",
        "_elect",
        "candidates = wanted.isr or elr",
        "candidates = (*wanted.isr, *elr)",
    ),
    _mutant(
        "the preferred replica is not preferred",
        "A preferred election leaves the leader where it is.",
        "_elect",
        "wanted.replicas[:1] if rules.mode is ElectionMode.PREFERRED else ()",
        "()",
    ),
    _mutant(
        "leaders move for nothing",
        "An election does not keep a valid leader.",
        "_elect",
        "(*first, partition.leader, *wanted.replicas)",
        "(*first, *wanted.replicas)",
    ),
    _mutant(
        "a dead leader",
        "Nobody asks whether an in-sync replica's broker may lead.",
        "_elect",
        "if replica in candidates and acceptable(replica):",
        "if replica in candidates:",
    ),
    _mutant(
        "any of several last known leaders",
        "A list of several is taken for a last known leader.",
        "_elect",
        "len(partition.last_known_elr) == 1",
        "partition.last_known_elr",
    ),
    _mutant(
        "a dead last known leader",
        "The last known leader is elected whether it lives or not, as in Kafka.",
        "_elect",
        "if last_known in wanted.replicas and acceptable(last_known):",
        "if True:",
    ),
    _mutant(
        "unclean without leave",
        "Any live replica is elected, whatever the mode.",
        "_elect",
        "if rules.mode is ElectionMode.UNCLEAN:",
        "if True:",
    ),
    _mutant(
        "unclean and recovered",
        "After an unclean election nobody knows that writes may be lost.",
        "_recovery_state",
        "state = int(LeaderRecoveryState.RECOVERING)",
        "pass",
    ),
    _mutant(
        "unclean with an old ELR",
        "An unclean election leaves the ELR as it was.",
        "_sets",
        "return (leader,), ()",
        "return (leader,), eligible",
    ),
    _mutant(
        "elected and still eligible",
        "Who is elected from the ELR stays in it.",
        "_sets",
        "tuple(replica for replica in others if replica != leader)",
        "others",
    ),
    _mutant(
        "eligible beside a leader that is enough",
        "Who misses the writes that a leader takes alone stays in the ELR.",
        "_sets",
        "() if rules.min_isr <= 1 else eligible",
        "eligible",
    ),
    _mutant(
        "an empty ISR without ELR",
        "The last member of an ISR leaves it, and nobody can come back cleanly.",
        "_sets",
        "if not wanted.isr and not rules.elr:",
        "if False:",
    ),
    Mutant(
        "no new epoch for a lost replica",
        "17",
        "A replica leaves, and the leader's epoch stays.",
        (Patch(f"{_RULES}._loses_one", gives(False)),),
    ),
    _mutant(
        "the last known leader is forgotten",
        "A partition that loses its leader remembers nobody.",
        "_last_known",
        "return (partition.leader,)",
        "return ()",
    ),
    _mutant(
        "the last known leader stays known",
        "A partition with a leader remembers the one before.",
        "_last_known",
        "    if leader != NO_LEADER:\n        return ()\n",
        "    if leader != NO_LEADER:\n        return remembered\n",
    ),
    _mutant(
        "a new replica has no directory",
        "A replica that is added gets none of its broker's directories.",
        "_directories",
        "else default_directory(replica)",
        "else DIRECTORY_MIGRATING",
    ),
    _mutant(
        "directories do not move with their replicas",
        "Directories stay in their order when the replicas change theirs.",
        "_directories",
        "if replicas == partition.replicas and not target.directories:",
        "if len(replicas) == len(partition.replicas) and not target.directories:",
    ),
)
