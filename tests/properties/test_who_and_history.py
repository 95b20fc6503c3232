"""`who` equals `history` for every thing, by a pass over the log and by an index.

Rule: the settled records that `who` finds for a thing are those that its history tells of. Three
differences are meant. ACLs that name a topic touch the topic, but belong to the history of the ACL.
ClearElrRecord names a topic, and belongs to the history of each of its partitions. A history also
tells of changes by records that don't name the thing, such as the removal of a topic for its
configs.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from audit.generated import write_history
from audit.index.of_things import (
    IndexedLog,
    indexed_log,
    indexed_moments,
    indexed_touches,
)
from audit.places.replicas import Replica, one_replica
from audit.questions.history import HistoryEvent, history
from audit.questions.history_things import thing
from audit.questions.names import Names
from audit.questions.search import Filter, SearchError, search
from audit.questions.touches import touches
from audit.reading.settling import SETTLED, Logged, moments, settled
from metadata.records import (
    AccessControlEntryRecord,
    ClearElrRecord,
    RemoveAccessControlEntryRecord,
)
from tests.unit.audit.memory_log import history as legal_history
from tests.unit.audit.nodes import write_node

ACLS = (AccessControlEntryRecord, RemoveAccessControlEntryRecord)
NEWEST = 3
seeds = st.integers(0, 2**32)
some = settings(max_examples=12)


class Compared(NamedTuple):
    """A log, opened once for each example."""

    replica: Replica
    log: IndexedLog
    every: list[Logged]


def opened(folder: Path) -> Compared:
    replica = one_replica(str(folder))
    reader = replica.reader()
    log = indexed_log(folder.parent / "indexes", replica, reader)
    assert log.damage == ""
    return Compared(replica, log, list(settled(reader.batches())))


def things(every: list[Logged]) -> list[str]:
    """Every word of every record that names something with a history."""
    names, words = Names(), {}
    for one in every:
        names.learn(one.record)
        words.update(dict.fromkeys(one.record.subjects(names)))
    return [word for word in words if has_history(word)]


def has_history(word: str) -> bool:
    try:
        thing(word)
    except SearchError:
        return False
    return "*" not in word


def is_wider(one: Logged, word: str) -> bool:
    return isinstance(one.record, ClearElrRecord) and word.startswith("partition:")


def told(events: Iterator[HistoryEvent]) -> list[Any]:
    return [
        (event.moment.base, [one.offset for one in event.records], event.differences)
        for event in events
    ]


def compare_thing(word: str, compared: Compared) -> None:
    replica, log, every = compared
    reader = replica.reader()
    end = reader.log_end
    wanted = Filter(resources=thing(word).resources[:1])
    found = list(search(replica, reader, wanted, 0, end))
    assert indexed_touches(log, wanted, 0, end, NEWEST) == touches(iter(found), NEWEST), word
    by_scan = list(history(thing(word), moments(iter(every))))
    by_index = history(thing(word), indexed_moments(log, thing(word), 0, end))
    assert told(by_index) == told(iter(by_scan)), word
    names_it = {one.logged.offset for one in found if one.logged.outcome == SETTLED}
    if word.startswith("topic:"):
        acls = {one.logged.offset for one in found if isinstance(one.logged.record, ACLS)}
        names_it -= acls
    naming = set()
    for event in by_scan:
        offsets = {one.offset for one in event.records if not is_wider(one, word)}
        if not offsets:
            continue
        if offsets & names_it:
            assert offsets <= names_it, word
            naming |= offsets
        else:
            assert event.differences, f"{word}: told, but neither named nor changed"
    assert naming == names_it, word


@some
@given(seeds)
def test_of_a_legal_history_with_every_kind_of_record(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_node(Path(folder, "node"), written=legal_history(seed, 60), segment_bytes=4_096)
        compared = opened(Path(folder, "node"))
        for word in things(compared.every):
            compare_thing(word, compared)


@settings(max_examples=3)
@given(seeds, st.booleans())
def test_of_a_history_as_clusters_live_it(seed: int, open_transaction: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_history(Path(folder), records=700, seed=seed, open_transaction=open_transaction)
        compared = opened(Path(folder, "controller-1"))
        for word in things(compared.every)[::7]:
            compare_thing(word, compared)
