"""Parts of the state at a moment as an image: what an explanation of one thing needs.

Rule: the image holds the entries on which the thing's explanation depends, and few others. So it
can't tell how many entries there are. Its secrets are digests, as in the index.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final

from audit.index.schema import TABLE_NUMBERS
from audit.index.states import StateReader
from metadata.codec import decode_records
from metadata.image import MetadataImage
from metadata.image.snapshot import image_from_records
from metadata.records import EntryRecord, Record, SessionRecord, TopicRecord
from metadata.records.coordination import resource_word
from metadata.uuids import uuid_text

EXPLAINED: Final = ("brokers", "topics", "partitions", "sessions", "entries", "keys")
"""The tables whose entries `image_around` knows how to surround."""
MOST: Final = 200_000
"""So many entries of a table may be needed."""
_VALUES: Final = (
    "SELECT v.value FROM thing t JOIN version v ON v.id ="
    " (SELECT max(id) FROM version WHERE thing = t.id AND id <= :upto)"
    " WHERE t.tbl = :table AND t.first_version <= :upto AND v.value IS NOT NULL {}"
    " ORDER BY t.id LIMIT :most"
)
_NAMED: Final = "AND t.name = :name"
_BELOW: Final = "AND t.name >= :name AND t.name < :end"
_BROKERS_DEFAULT: Final = "broker:<default>"


def image_around(
    database: sqlite3.Connection, at: int, table: str, name: str
) -> MetadataImage | None:
    """Return an image with an entry of `EXPLAINED` and what surrounds it; None: it is not there.

    Raises LookupError if the state is not known then, or if too many entries surround it.
    """
    found = _Entries(database, at)
    records = list(found.named(table, name))
    if not records:
        return None
    around: dict[str, Callable[[], Iterable[Record]]] = {
        "brokers": lambda: found.around_broker(name),
        "topics": lambda: found.around_topic(records),
        "partitions": lambda: chain(found.around_partition(name), records),
        "sessions": lambda: found.around_session(records),
        "entries": lambda: found.around_entry(records),
        "keys": lambda: records,
    }
    together = chain(found.all("features"), around[table]())
    return image_from_records(together, at, 0, 0, with_state_hash=False)


class _Entries:
    """The entries of a moment, as records. Each method yields them so that they can be replayed."""

    def __init__(self, database: sqlite3.Connection, at: int) -> None:
        self._database = database
        self._upto = StateReader(database).version_end(at)

    def all(self, table: str) -> Iterator[Record]:
        """Yield the records of all entries of a table. Raises LookupError."""
        return self._values(table, "")

    def named(self, table: str, name: str) -> Iterator[Record]:
        """Yield the records of the entry with a name."""
        return self._values(table, _NAMED, name=name)

    def _below(self, table: str, start: str) -> Iterator[Record]:
        """Yield the records of the entries whose names begin so. Raises LookupError."""
        return self._values(table, _BELOW, name=start, end=start[:-1] + chr(ord(start[-1]) + 1))

    def _values(self, table: str, condition: str, **said: str) -> Iterator[Record]:
        values: dict[str, Any] = {"table": TABLE_NUMBERS[table], "upto": self._upto, **said}
        rows = self._database.execute(_VALUES.format(condition), {**values, "most": MOST + 1})
        for number, (value,) in enumerate(rows):
            if number == MOST:
                raise LookupError(
                    f"more than {MOST:,} entries of the table {table} would have to be looked at"
                )
            yield from decode_records(value)

    def around_broker(self, name: str) -> Iterator[Record]:
        """Yield all brokers, and for one that is stopping also whatever it may lead."""
        brokers = list(self.all("brokers"))
        yield from brokers
        image = image_from_records(brokers, 0, 0, 0, with_state_hash=False)
        broker = image.cluster.brokers.get(int(name))
        if broker is not None and broker.in_controlled_shutdown and not broker.fenced:
            yield from self.all("topics")
            yield from self.all("partitions")

    def around_partition(self, name: str) -> Iterator[Record]:
        """Yield what decides about a partition, but not the partition."""
        yield from self.all("brokers")
        yield from self._with_settings(name.rpartition("-")[0])

    def around_topic(self, records: list[Record]) -> Iterator[Record]:
        """Yield a topic with its partitions, and what decides about them."""
        yield from self.all("brokers")
        for topic in records:
            assert isinstance(topic, TopicRecord)
            yield from self._with_settings(topic.name)
            for record in self._below("partitions", f"{topic.name}-"):
                if getattr(record, "topic_id", None) == topic.topic_id:
                    yield record

    def _with_settings(self, topic: str) -> Iterator[Record]:
        yield from self.named("topics", topic)
        yield from self.named("configs", f"topic:{topic}")
        yield from self.named("configs", _BROKERS_DEFAULT)

    def around_session(self, records: list[Record]) -> Iterator[Record]:
        """Yield a session and its entries."""
        mine = {record.session_id for record in records if isinstance(record, SessionRecord)}
        yield from records
        for record in self.all("entries"):
            if isinstance(record, EntryRecord) and record.session_id in mine:
                yield record

    def around_entry(self, records: list[Record]) -> Iterator[Record]:
        """Yield the entries of the same lock, election or group, with their sessions."""
        (entry,) = (record for record in records if isinstance(record, EntryRecord))
        resource = (entry.kind, entry.name)
        queue = [
            record
            for record in self._below("entries", f"{resource_word(*resource)}/")
            if isinstance(record, EntryRecord) and (record.kind, record.name) == resource
        ]
        for session in sorted({record.session_id for record in queue}):
            yield from self.named("sessions", uuid_text(session))
        yield from queue
