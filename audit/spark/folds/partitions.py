"""The fold of partitions: from a part's rows to its events, intervals and availability.

Rule: a part holds all partitions of some topics, so parts are folded apart from each other. Rows
come in the log's order. All rows that settle in one batch are one moment: a partition is compared
with what it was before the moment, and if it differs, an interval ends and the next begins. What a
micro-batch leaves is carried to the next one: partitions with their intervals so far, names and min
ISR of topics, and the rows of a transaction that has not ended. So a log gives the same tables
however it is cut into micro-batches.

Every part knows the names of all topics: the removal of a topic names its id, and ends the min ISR
of its name, which a later topic in another part may bear.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from audit.findings.event_making import caller_traits
from audit.findings.events import AuditEvent, EventCaller
from audit.lake.schemas import rows_to_kept, to_kept
from audit.spark.folds.arrow_values import Ids, from_ipc, ints, ints_or_none, lists, texts, to_ipc
from audit.spark.folds.carried import (
    DAY_MS,
    DaySums,
    PartitionNow,
    PartitionsCarried,
    State,
    TopicNow,
    availability_key,
    interval_row,
    partition_day_row,
    sums_places,
)
from audit.spark.folds.slices import (
    CALLER,
    CONFIG,
    MIN_ISR,
    PARTITION,
    PARTITION_CHANGE,
    REMOVE_TOPIC,
    TOPIC,
    part_of_topic,
)
from audit.spark.folds.transactions import Spans, settled_rows
from audit.tables import AVAILABILITY, PARTITION_EVENTS, PARTITION_INTERVALS
from metadata.records import NO_LEADER, ConfigResourceType

_VALUE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_TOPIC_CONFIG: Final = int(ConfigResourceType.TOPIC)
_BROKER_CONFIG: Final = int(ConfigResourceType.BROKER)
_ASKED: Final = tuple(name for name in CALLER if name != "request_id")
_NOT_BEGUN: Final = -2


class _LeaderTurn(NamedTuple):
    """A partition lost its leader, got one again, or was removed without one."""

    place: int
    """Of the record among the rows."""
    kind: str
    """As of an AuditEvent."""
    subject: str
    what: str


class PartTables(NamedTuple):
    """A part's new rows, as they are kept."""

    events: pa.Table
    ended: pa.Table
    """Intervals that have ended."""
    lasting: pa.Table
    """Intervals that have not. They replace those of the micro-batch before."""
    past_days: pa.Table
    """Availability of days that are over."""
    newest_day: pa.Table
    """Availability of the newest day so far. It replaces that of the micro-batch before."""
    leaders: list[AuditEvent]
    """Losses of leaders, and their ends."""


class PartitionFold:
    """Folds the rows of one part."""

    def __init__(self, carried: PartitionsCarried) -> None:
        self._carried = carried
        self._topics = carried.topics
        self._by_name = {topic.name: topic for topic in carried.topics.values()}
        self._touched: dict[PartitionNow, tuple[TopicNow, int, State]] = {}
        """With the state before the moment."""
        self._ended: list[tuple[object, ...]] = []
        self._past: list[tuple[object, ...]] = []
        self._removals: list[tuple[int, int]] = []
        """(place of the RemoveTopicRecord among the rows, partition)"""
        self._turns: list[_LeaderTurn] = []
        self._known_names = dict(carried.names)
        """Also those of topics that are removed in this micro-batch."""
        self._base, self._ms = -1, 0

    def begin(self, facts: pa.Table, base: int, time_ms: int) -> PartitionsCarried:
        """Take a checkpoint's rows as facts of one moment, which are no events."""
        moment = facts.append_column("settled_base", pa.repeat(base, facts.num_rows))
        self._apply(moment.append_column("settled_ms", pa.repeat(time_ms, facts.num_rows)))
        return self._carried

    def take(self, rows: pa.Table, known: Spans, horizon_ms: int) -> PartTables:
        """Fold a micro-batch's rows, and return the new rows of the tables.

        `rows`: ordered, with the columns slices.ROW_COLUMNS. `horizon_ms`: the time of the
        micro-batch's last batch.
        """
        if self._carried.waiting:
            rows = pa.concat_tables([from_ipc(self._carried.waiting), rows])
        rows, waiting = settled_rows(rows, known)
        self._carried.waiting = to_ipc(waiting) if waiting.num_rows else b""
        self._apply(rows)
        lasting = list(self._lasting())
        newest = list(self._days(horizon_ms))
        return PartTables(
            self._events(rows),
            rows_to_kept(self._ended, PARTITION_INTERVALS),
            rows_to_kept(lasting, PARTITION_INTERVALS),
            rows_to_kept(self._past, AVAILABILITY),
            rows_to_kept(newest, AVAILABILITY),
            list(self._leader_events(rows)),
        )

    # -- record by record ------------------------------------------------------------------------

    def _apply(self, rows: pa.Table) -> None:
        types, topic_ids = texts(rows.column("type")), texts(rows.column("topic_id"))
        bases, times, numbers = (
            ints(rows.column(name)) for name in ("settled_base", "settled_ms", "partition")
        )
        leaders = ints_or_none(rows.column("leader"))
        isrs, replicas = lists(rows.column("isr")), lists(rows.column("replicas"))
        topics = self._topics
        for place, kind in enumerate(types):
            if bases[place] != self._base:
                self._end_moment()
                self._base, self._ms = bases[place], times[place]
            if kind == PARTITION_CHANGE:
                topic = topics[topic_ids[place]]
                number = numbers[place]
                self._change(
                    topic,
                    number,
                    topic.partitions[number],
                    (leaders[place], isrs[place], replicas[place]),
                    place,
                )
            elif kind == PARTITION:
                told = (leaders[place], isrs[place], replicas[place])
                self._create(topics[topic_ids[place]], numbers[place], told, place)
            elif kind == TOPIC:
                self._add_topic(topic_ids[place], rows.column("topic_name")[place].as_py())
            elif kind == REMOVE_TOPIC:
                self._remove_topic(topic_ids[place], place)
            elif kind == CONFIG:
                self._configure(rows, place)
        self._end_moment()

    def _change(
        self,
        topic: TopicNow,
        number: int,
        one: PartitionNow,
        told: tuple[int | None, Ids | None, Ids | None],
        place: int,
    ) -> None:
        if one not in self._touched:
            self._touched[one] = (topic, number, one.state)
        leader, isr, replicas = told
        if leader is not None:
            if (leader == NO_LEADER) != (one.leader == NO_LEADER):
                self._tell(topic, number, place, leader)
            one.leader = leader
        if isr is not None:
            one.isr = isr
        if replicas is not None:
            one.replicas = replicas

    def _create(
        self,
        topic: TopicNow,
        number: int,
        told: tuple[int | None, Ids | None, Ids | None],
        place: int,
    ) -> None:
        one = topic.partitions.get(number)
        if one is None:
            sums = DaySums(0, {})
            one = PartitionNow(_NOT_BEGUN, (), (), 0, -1, 0, sums)
            topic.partitions[number] = one
        leader, isr, replicas = told
        full = (NO_LEADER if leader is None else leader, isr or (), replicas or ())
        self._change(topic, number, one, full, place)

    def _tell(self, topic: TopicNow, number: int, place: int, leader: int | None) -> None:
        """Note that a leader was lost or found; None: the partition is removed."""
        kind = "leader_lost" if leader == NO_LEADER else "leader_found"
        what = "" if leader == NO_LEADER else f"broker {leader}"
        if leader is None:
            what = "removed"
        self._turns.append(_LeaderTurn(place, kind, f"partition:{topic.name}-{number}", what))

    def _add_topic(self, topic_id: str, name: str) -> None:
        carried = self._carried
        carried.names[topic_id] = self._known_names[topic_id] = name
        if part_of_topic(topic_id, carried.parts) == carried.part:
            topic = self._topics[topic_id] = TopicNow(topic_id, name, {})
            self._by_name[name] = topic

    def _remove_topic(self, topic_id: str, place: int) -> None:
        name = self._carried.names.pop(topic_id)
        if name:
            self._carried.min_isr.pop(name, None)
        topic = self._topics.pop(topic_id, None)
        if topic is None:
            return
        if self._by_name.get(name) is topic:
            del self._by_name[name]
        for number, one in sorted(topic.partitions.items()):
            self._removals.append((place, number))
            if one.leader == NO_LEADER:
                self._tell(topic, number, place, None)
            _, _, before = self._touched.pop(one, (topic, number, one.state))
            if one.from_offset >= 0:
                self._end(topic, number, one, before)
                self._carried.removed.append((availability_key(topic, number), one.sums))

    def _configure(self, rows: pa.Table, place: int) -> None:
        if rows.column("config_key")[place].as_py() != MIN_ISR:
            return
        of = rows.column("resource_type")[place].as_py()
        name = rows.column("name")[place].as_py() or ""
        value = rows.column("config_value")[place].as_py()
        number = int(value) if value is not None and _VALUE.fullmatch(value) else 0
        if of == _TOPIC_CONFIG and name:
            touched = [self._by_name[name]] if name in self._by_name else []
        elif of == _BROKER_CONFIG and not name:
            touched = list(self._topics.values())
        else:
            return
        if number:
            self._carried.min_isr[name] = number
        else:
            self._carried.min_isr.pop(name, None)
        for topic in touched:
            for partition, one in topic.partitions.items():
                if one not in self._touched:
                    self._touched[one] = (topic, partition, one.state)

    # -- moment by moment ------------------------------------------------------------------------

    def _end_moment(self) -> None:
        by_name = self._carried.min_isr
        default = by_name.get("", 0) or 1
        for one, (topic, number, before) in self._touched.items():
            one.min_isr = by_name.get(topic.name, 0) or default
            if before == one.state:
                continue
            if one.from_offset >= 0:
                self._end(topic, number, one, before)
                if before[0] != one.leader:
                    one.sums.change_leader(self._ms)
            one.from_offset, one.from_ms = self._base, self._ms
            one.sums.begin(self._ms)
        self._touched.clear()

    def _end(self, topic: TopicNow, number: int, one: PartitionNow, state: State) -> None:
        """End the interval of a state."""
        self._ended.append(interval_row(topic, number, one, state, self._base, self._ms))
        one.sums.add(one.from_ms, self._ms, sums_places(state))

    # -- at the end of the micro-batch -----------------------------------------------------------

    def _lasting(self) -> Iterator[tuple[object, ...]]:
        for topic in self._topics.values():
            for number, one in topic.partitions.items():
                yield interval_row(topic, number, one, one.state, None, None)

    def _days(self, horizon_ms: int) -> Iterator[tuple[object, ...]]:
        """Yield the newest day's rows, and move those of earlier days to the past."""
        today = horizon_ms // DAY_MS
        midnight = today * DAY_MS
        for key, sums in self._carried.removed:
            self._past += [
                partition_day_row(key, day, each) for day, each in sums.take_before(today)
            ]
            if today in sums.days:
                yield partition_day_row(key, today, sums.days[today])
        self._carried.removed = [each for each in self._carried.removed if each[1].days]
        for topic in self._topics.values():
            for number, one in topic.partitions.items():
                places = sums_places(one.state)
                if one.sums.counted_ms < midnight:
                    one.sums.add(one.from_ms, midnight, places)
                key = availability_key(topic, number)
                for day, each in one.sums.take_before(today):
                    self._past.append(partition_day_row(key, day, each))
                shown = one.sums.shown(today, horizon_ms, one.from_ms, places)
                if shown is not None:
                    yield partition_day_row(key, today, shown)

    def _leader_events(self, rows: pa.Table) -> Iterator[AuditEvent]:
        """Yield losses of leaders and their ends, in the log's order."""
        places = pa.array([turn.place for turn in self._turns], pa.int64())
        told = rows.select(["settled_base", "offset", "settled_ms", *_ASKED]).take(places)
        for turn, row in zip(self._turns, told.to_pylist(), strict=True):
            caller = EventCaller(
                address=row["client_address"],
                **{name: row[name] for name in _ASKED if name != "client_address"},
            )
            yield AuditEvent(
                row["settled_base"],
                row["offset"],
                row["settled_ms"],
                turn.kind,
                turn.subject,
                caller,
                what=turn.what,
                traits=caller_traits(caller),
            )

    def _events(self, rows: pa.Table) -> pa.Table:
        """Return the rows of PARTITION_EVENTS in the order of their offsets."""
        types = rows.column("type")
        told = pc.is_in(types, pa.array([PARTITION, PARTITION_CHANGE]))
        places = pc.indices_nonzero(told).cast(pa.int64())
        numbers = rows.column("partition").take(places).combine_chunks().cast(pa.int64())
        if self._removals:
            removed = pa.array([place for place, _ in self._removals], pa.int64())
            of = pa.array([number for _, number in self._removals], pa.int64())
            places, numbers = pa.concat_arrays([places, removed]), pa.concat_arrays([numbers, of])
            order = pc.sort_indices(places)
            places, numbers = places.take(order), numbers.take(order)
        events = rows.take(places)
        topic_ids = events.column("topic_id").combine_chunks().dictionary_encode()
        names = pa.array([self._known_names[each] for each in topic_ids.dictionary.to_pylist()])
        kinds = pc.index_in(
            events.column("type"), pa.array([PARTITION, PARTITION_CHANGE, REMOVE_TOPIC])
        )
        made = {
            "partition": numbers,
            "topic_name": names.take(topic_ids.indices),
            "kind": pa.array(["created", "changed", "removed"]).take(kinds),
            "day": events.column("settled_ms").cast(pa.timestamp("ms")).cast(pa.date32()),
        }
        for name, values in made.items():
            at = events.schema.get_field_index(name)
            if at < 0:
                events = events.append_column(name, values)
            else:
                events = events.set_column(at, name, values)
        return to_kept(events, PARTITION_EVENTS)
