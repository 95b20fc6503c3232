"""The table of Kafka's answers that `make test` uses: chooses its rows, writes and reads them.

Rule: rows are drawn at random, kept for their traits, and never edited by hand. A trait is one
thing that can be said of a case or of Kafka's answer: the mode of the election, where the leader
came from, whether a reassignment goes on, whether the record names the ISR, and so on. Any three
traits that were met together in the cases drawn are met together in a row of the table.
"""

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Final

from metadata.records import (
    LEADER_RECOVERY_STATE_UNTOUCHED,
    NO_LEADER,
    NO_LEADER_CHANGE,
    PartitionChangeRecord,
)
from tests.oracles.partition_changes import ours
from tests.oracles.partition_changes.comparing import Judged
from tests.oracles.partition_changes.differences import ELR, ISR, LAST, LEADER, RECOVERY
from tests.oracles.partition_changes.lines import (
    Answer,
    Case,
    read_answer,
    read_case,
    show_case,
    show_record,
)

TABLE: Final = Path(__file__).parent / "answers.txt"
TARGETS: Final = Path(__file__).parent / "targets.txt"
"""Reassignments and cancellations, whose targets Kafka makes by itself; the first ones drawn."""
_OF_ASSIGNMENTS: Final = ("replicas", "removing_replicas", "adding_replicas", "directories")
_HEAD: Final = (
    "# What Kafka's PartitionChangeBuilder answers: STATE | CHANGE | RECORD. See lines.py.\n"
    "# `make oracle KEEP=1` writes this file. Nobody edits it.\n"
)

Trait = tuple[int, object]
Row = tuple[Case, Answer]


def chosen(judged: Iterable[Judged]) -> list[str]:
    """Return the lines of the table, sorted."""
    drawn = [(shown(one), traits(one)) for one in judged]
    drawn.sort(key=lambda pair: (len(pair[0]), pair[0]))
    met: set[object] = set()
    kept = []
    for line, found in drawn:
        new = [three for three in combinations(found, 3) if three not in met]
        if new:
            met.update(new)
            kept.append(line)
    return sorted(kept)


def shown(judged: Judged) -> str:
    """Return a row."""
    return f"{show_case(judged.case)} | {show_record(judged.kafka.record)}"


def traits(judged: Judged) -> tuple[Trait, ...]:
    """Return what a case and Kafka's answer look like."""
    return tuple(enumerate((*_of_election(judged), *_of_assignment(judged))))


def _of_election(judged: Judged) -> tuple[object, ...]:
    partition, change = judged.case
    after, record = judged.kafka.after, judged.kafka.record
    assert after is not None
    isr = partition.isr if change.target.isr is None else change.target.isr
    origins = {"isr": isr, "elr": partition.elr, "last": partition.last_known_elr}
    return (
        change.rules.mode,
        change.rules.elr,
        bool(isr),
        len(isr) >= change.rules.min_isr,
        next((name for name, ids in origins.items() if after.leader in ids), "none"),
        after.leader == NO_LEADER,
        after.leader == partition.leader,
        after.leader in after.replicas[:1],
        partition.leader in isr and partition.leader in change.alive,
        bool({*after.replicas[:1]} & {*isr} & {*change.alive}),
        bool({*change.lost} & {*partition.isr, *partition.elr}),
        partition.leader_recovery_state,
        change.target.recovery_state,
        len(partition.last_known_elr),
        *(_names(record, field) for field in (LEADER, ISR, ELR, LAST, RECOVERY)),
        tuple(one.name for one in judged.excuses),
    )


def _of_assignment(judged: Judged) -> tuple[object, ...]:
    partition, change = judged.case
    after, record = judged.kafka.after, judged.kafka.record
    assert after is not None
    target = change.target
    adding = partition.adding if target.adding is None else target.adding
    removing = partition.removing if target.removing is None else target.removing
    return (
        (len(adding) > len(removing)) - (len(adding) < len(removing)),
        bool(adding),
        bool(removing),
        bool(after.adding or after.removing),
        {*after.isr} >= {*after.replicas},
        {*after.replicas} >= {*partition.replicas},
        bool(partition.directories),
        bool(target.directories),
        bool(change.defaults),
        *(_names(record, field) for field in _OF_ASSIGNMENTS),
    )


def _names(record: PartitionChangeRecord | None, field: str) -> bool:
    untouched = (None, NO_LEADER_CHANGE, LEADER_RECOVERY_STATE_UNTOUCHED)
    return record is not None and getattr(record, field) not in untouched


def write(lines: Iterable[str], path: Path = TABLE) -> None:
    """Write the table."""
    path.write_text(_HEAD + "".join(f"{line}\n" for line in lines))


def read(path: Path = TABLE) -> list[Row]:
    """Return the rows. The partitions behind the records are those of our replay."""
    texts = [line.rpartition(" | ") for line in lines_of(path)]
    cases = [read_case(case) for case, _, _ in texts]
    records = [read_answer(record).record for _, _, record in texts]
    return list(zip(cases, ours.replayed(cases, records), strict=True))


def lines_of(path: Path = TABLE) -> list[str]:
    """Return the lines of the table's rows."""
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]
