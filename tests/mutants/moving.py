"""Mutants of what happens to replicas: partitions that are added, reassignments, directories."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives, instead

MOVES = searched_in("cluster", "moves")
FORGETS = searched_in("cluster", "forgets")
_MANAGERS = "controller.managers."
_MOVES = _MANAGERS + "reassignments."


def _edit(target: str, *changes: tuple[str, str]) -> tuple[Patch, ...]:
    return (Patch(target, edited(*changes)),)


MOVING = (
    Mutant(
        "a fenced broker is in the ISR of a new partition",
        "17, I16",
        "Every replica of a new partition is in its ISR.",
        _edit(
            _MANAGERS + "assignments.PartitionRecords.of",
            (
                "tuple(broker_id for broker_id in replicas if is_active(image, broker_id))",
                "tuple(broker_id for broker_id in replicas)",
            ),
        ),
    ),
    Mutant(
        "partitions are taken away",
        "17, I17",
        "The new number of partitions may be lower than the old one.",
        _edit(
            _MANAGERS + "partitions.PartitionManager._check_count",
            ("if wanted.count <= present:", "if wanted.count == present:"),
        ),
    ),
    Mutant(
        "added partitions have another replication factor",
        "17, I17",
        "The topic's first partition is not looked at.",
        _edit(_MANAGERS + "partitions.PartitionManager._records", ("if numbers:", "if False:")),
    ),
    Mutant(
        "added partitions take the place of others",
        "17, I17",
        "Added partitions are numbered from 0.",
        _edit(
            _MANAGERS + "partitions.PartitionManager._records",
            ("first = numbers[-1] + 1 if numbers else 0", "first = 0"),
        ),
    ),
    Mutant(
        "a reassignment drops replicas at once",
        "17, I17",
        "The replicas that leave go before the new ones are in sync.",
        _edit(_MOVES + "started", ("replicas=(*wanted, *removing)", "replicas=wanted")),
    ),
    Mutant(
        "an overlapping reassignment forgets the first one",
        "17, I17",
        "What the first one was adding counts as gone.",
        _edit(
            _MOVES + "started",
            ("set(partition.replicas)", "set(partition.replicas) - set(partition.adding)"),
        ),
    ),
    Mutant(
        "a cancelled reassignment keeps what it added in sync",
        "17, I16",
        "The ISR keeps replicas that are none any more.",
        _edit(
            _MOVES + "_reverted",
            (
                "for replica in partition.isr if replica not in partition.adding",
                "for replica in partition.isr",
            ),
        ),
        MOVES,
    ),
    Mutant(
        "cancelling loses writes",
        "17, I17",
        "A replica that may lack writes becomes the ISR, though the topic doesn't allow that.",
        _edit(_MOVES + "_reverted", ("if not isr and not unclean:", "if False:")),
    ),
    Mutant(
        "cancelling nothing",
        "17, I17",
        "A partition without a reassignment is cancelled all the same.",
        _edit(
            _MOVES + "_reverted",
            ("if not partition.adding and not partition.removing:", "if False:"),
        ),
    ),
    Mutant(
        "replicas on brokers that there are not",
        "17, I17",
        "A reassignment may name brokers that are not registered.",
        _edit(
            _MOVES + "_check_replicas",
            (
                "if image.cluster.brokers.get(broker_id) is None:",
                "if image.cluster.brokers.get(broker_id) is None and False:",
            ),
            (
                '"" if broker_id in partition.replicas else why_no_new_replica(image, broker_id)',
                '""',
            ),
        ),
    ),
    Mutant(
        "a partition moves twice in one request",
        "17, I17",
        "Both are decided on the same state.",
        _edit(
            _MOVES + "_Altering.changed",
            ("if (wanted.topic, wanted.partition) in self._repeated:", "if False:"),
        ),
    ),
    Mutant(
        "the replication factor changes though that was refused",
        "17, I17",
        "allowReplicationFactorChange is ignored (KIP-860).",
        (Patch(_MOVES + "_check_factor", gives(None)),),
    ),
    Mutant(
        "a replica on a lost directory is elected",
        "17, I17",
        "LOST counts as a directory that works (KIP-858).",
        _edit(
            _MANAGERS + "directories.is_online", ("if directory == DIRECTORY_LOST:", "if False:")
        ),
    ),
    Mutant(
        "directories don't matter in elections",
        "17, I17",
        "A replica may lead wherever it lies.",
        (
            Patch(
                _MANAGERS + "partition_events.with_online_directory",
                instead(lambda _image, _partition, acceptable: acceptable),
            ),
        ),
        MOVES,
    ),
    Mutant(
        "a failed directory takes all replicas with it",
        "17, I17",
        "A broker leaves every ISR when one of its directories fails.",
        _edit(
            _MANAGERS + "replica_directories.leave_directories",
            (" or directory_of(partition, broker_id) not in directories", ""),
        ),
    ),
    Mutant(
        "a replica that was put on a directory that doesn't work stays in sync",
        "17, I17",
        "AssignReplicasToDirs believes that every directory works.",
        (Patch(_MANAGERS + "replica_directories.is_online", gives(True)),),
    ),
    Mutant(
        "a broker without a working directory is online",
        "17, I17",
        "It is not fenced when its last directory fails.",
        (Patch("controller.http.metadata_fetch.nothing_works", gives(False)),),
    ),
    Mutant(
        "a cordoned broker gets replicas",
        "17, I17",
        "Cordons are ignored (KIP-1066).",
        (
            Patch(_MANAGERS + "assignments.is_cordoned", gives(False)),
            Patch("metadata.image.brokers.is_cordoned", gives(False)),
        ),
    ),
    Mutant(
        "a cordon below its feature level",
        "11, I17",
        "A cordon is written though metadata.version is below 30. Guarded twice: both are off.",
        (
            Patch(_MANAGERS + "replica_directories.may_cordon", gives(True)),
            Patch(_MANAGERS + "level_gate.LevelGate.check", instead(lambda *_arguments: iter(()))),
        ),
    ),
    Mutant(
        "a page of partitions leaves some out",
        "2, I7",
        "The next page begins behind the topic in which the last one ended.",
        _edit(
            "controller.http.replicas.lists._names",
            ("here = (last[0],) if topics.named(last[0]) is not None else ()", "here = ()"),
        ),
    ),
    Mutant(
        "a reassignment never ends",
        "17, I17",
        "A partition keeps the replicas that it should lose.",
        (Patch(_MANAGERS + "partition_change._completed", instead(lambda wanted: wanted)),),
        MOVES,
    ),
    Mutant(
        "a broker is forgotten whatever is lost with it",
        "I18",
        "Nothing is refused for want of force.",
        (
            Patch(
                "controller.managers.brokers.check_nothing_lost",
                edited(("    if reasons:", "    if False:")),
            ),
        ),
        FORGETS,
    ),
)
