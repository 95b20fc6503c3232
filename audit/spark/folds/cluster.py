"""The fold of what is not a partition's: brokers, configs, privileged changes, who changed what.

Rule: these records are few, so the driver folds them in one place, as records. A row of privileged
or config events is made when its record is settled. Who changed what is summed by the tasks that
decode the log, and added up here by day. A day's sums are carried on until nothing can change them:
until the log has reached a later day, and no record of that day waits in an open transaction.

Registrations of brokers are read as the controllers' replay reads them. A fenced broker is `fenced`
even if it is stopping too. Below `logberg.version` 1, a repeated registration of the same
incarnation keeps the broker's flags (ADR 0015). States are compared at the end of each moment.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from audit.lake.schemas import rows_to_kept, to_kept
from audit.questions.names import Names
from audit.questions.subjects import fields_text, resource
from audit.reading.settling import SETTLED, Logged, Moment, moments
from audit.spark.folds.arrow_values import from_ipc, to_ipc
from audit.spark.folds.carried import (
    DAY_MS,
    FENCED,
    PRESENT,
    BrokerNow,
    BrokersCarried,
    ClusterCarried,
    DaySums,
    day_text,
)
from audit.spark.folds.slices import FEW_COLUMNS
from audit.spark.folds.transactions import Spans, settled_rows
from audit.tables import (
    AVAILABILITY,
    BROKER_INTERVALS,
    CHANGES,
    CONFIG_EVENTS,
    PRIVILEGED,
)
from ledger.batch import ACTED_AS, BatchHeader, Provenance
from metadata.codec import decode_record
from metadata.features import LITERAL_AMENDMENTS_FROM, LOGBERG_VERSION
from metadata.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    FencingChange,
    Record,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from metadata.records.configs import config_kind
from metadata.records.declaring import REDACTED
from metadata.uuids import parse_uuid, uuid_text

Row = tuple[object, ...]

_FENCED: Final = "fenced"
_STOPPING: Final = "stopping"
_ONLINE: Final = "online"


class BrokerFold:
    """Folds moments; what it returns are rows of a job's kinds."""

    def __init__(self, carried: BrokersCarried) -> None:
        self._carried = carried
        self._brokers = carried.brokers
        self._touched: dict[int, BrokerNow] = {}
        self.ended: list[Row] = []
        """Intervals that have ended, as rows of BROKER_INTERVALS."""
        self.past_days: list[Row] = []
        """Rows of AVAILABILITY of days that are over; complete after `days`."""

    def step(self, moment: Moment) -> None:
        """Apply all records of a moment."""
        for logged in moment.records:
            self._apply(logged.record)
        for broker_id, one in self._touched.items():
            self._look_at(broker_id, one, moment)
        self._touched.clear()

    def lasting(self) -> Iterator[Row]:
        """Yield the intervals that have not ended."""
        for broker_id, one in self._brokers.items():
            if one.shown:
                yield (broker_id, one.from_offset, None, one.from_ms, None, one.shown)

    def days(self, horizon_ms: int) -> Iterator[Row]:
        """Yield the newest day's rows of AVAILABILITY."""
        today = horizon_ms // DAY_MS
        midnight = today * DAY_MS
        for broker_id, one in list(self._brokers.items()):
            if one.shown and one.sums.counted_ms < midnight:
                one.sums.add(one.from_ms, midnight, _places(one.shown))
            for day, sums in one.sums.take_before(today):
                self.past_days.append(_day_row(broker_id, day, sums))
            since = one.from_ms if one.shown else None
            shown = one.sums.shown(today, horizon_ms, since, _places(one.shown))
            if shown is not None:
                yield _day_row(broker_id, today, shown)
            elif one.incarnation is None:
                del self._brokers[broker_id]

    def _look_at(self, broker_id: int, one: BrokerNow, moment: Moment) -> None:
        state = one.state
        if state == one.shown:
            return
        if one.shown:
            span = (one.from_offset, moment.base, one.from_ms, moment.time_ms)
            self.ended.append((broker_id, *span, one.shown))
            one.sums.add(one.from_ms, moment.time_ms, _places(one.shown))
        one.shown, one.from_offset, one.from_ms = state, moment.base, moment.time_ms
        one.sums.begin(moment.time_ms)

    def _apply(self, record: Record) -> None:
        match record:
            case BrokerRegistrationChangeRecord():
                one = self._touch(record.broker_id)
                if record.fenced != FencingChange.NONE:
                    one.fenced = record.fenced == FencingChange.FENCE
                if record.in_controlled_shutdown:
                    one.stopping = True
            case RegisterBrokerRecord():
                one = self._touch(record.broker_id)
                if self._carried.literal or one.incarnation != record.incarnation_id:
                    one.incarnation = record.incarnation_id
                    one.fenced, one.stopping = record.fenced, record.in_controlled_shutdown
            case FeatureLevelRecord(name=name, feature_level=level) if name == LOGBERG_VERSION:
                self._carried.literal = level >= LITERAL_AMENDMENTS_FROM
            case UnregisterBrokerRecord():
                self._touch(record.broker_id).incarnation = None
            case FenceBrokerRecord():
                self._touch(record.id).fenced = True
            case UnfenceBrokerRecord():
                self._touch(record.id).fenced = False

    def _touch(self, broker_id: int) -> BrokerNow:
        one = self._brokers.get(broker_id)
        if one is None:
            one = self._brokers[broker_id] = BrokerNow(DaySums(0, {}))
        self._touched[broker_id] = one
        return one


def _places(state: str) -> tuple[int, ...]:
    return (PRESENT, FENCED) if state == _FENCED else (PRESENT,)


def _day_row(broker_id: int, day: int, sums: list[int]) -> Row:
    return ("broker", str(broker_id), day_text(day), *sums)


_CHANGES_KEY: Final = ("day", "principal", "operation", "type")
_SUMS: Final = (
    ("count", "sum"),
    ("first_offset", "min"),
    ("last_offset", "max"),
    ("first_ms", "min"),
    ("last_ms", "max"),
)


_Told = tuple[str, str, str | None, str | None]
"""Kind, name, key and value."""


class ClusterTables(NamedTuple):
    """New rows, as they are kept."""

    moments: list[Moment]
    """The settled records."""
    privileged: pa.Table
    configs: pa.Table
    ended: pa.Table
    """Intervals of brokers that have ended."""
    lasting: pa.Table
    past_days: pa.Table
    """Availability of brokers on days that are over."""
    newest_day: pa.Table
    changes: pa.Table
    """The rows of all days on which something changed."""
    changes_since: str
    """Those rows replace all rows from this day on."""


class ClusterFold:
    """Folds the few records and the counts of a micro-batch."""

    def __init__(self, carried: ClusterCarried) -> None:
        self._carried = carried
        self._names = Names()
        self._names.topics.update(carried.names)
        self._brokers = BrokerFold(carried.brokers)
        self._privileged: list[tuple[Any, ...]] = []
        self._configs: list[tuple[Any, ...]] = []

    def begin(self, records: Iterable[Record], base: int, time_ms: int) -> None:
        """Take a checkpoint's records as facts of one moment, which are no events."""
        header = BatchHeader(base, 0, 0, time_ms, Provenance(), b"")
        facts = [Logged(base, header, record, SETTLED, base, time_ms) for record in records]
        for logged in facts:
            self._names.learn(logged.record)
        self._brokers.step(Moment(base, time_ms, facts))
        self._carried.names = self._names.topics

    def take(self, few: pa.Table, counts: pa.Table, known: Spans, horizon_ms: int) -> ClusterTables:
        """Fold a micro-batch's rows.

        `few`, `counts`: ordered, with the columns slices.FEW_COLUMNS and COUNT_COLUMNS.
        """
        for record in _records(few.filter(pc.equal(few.column("type"), "TOPIC_RECORD"))):
            self._names.learn(record)
        if self._carried.waiting:
            few = pa.concat_tables([from_ipc(self._carried.waiting), few])
        settled, waiting = settled_rows(few, known)
        self._carried.waiting = to_ipc(waiting) if waiting.num_rows else b""
        found = list(moments(_logged(settled)))
        for moment in found:
            self._step(moment)
        self._carried.names = self._names.topics
        newest = list(self._brokers.days(horizon_ms))
        since, changes = self._changes(counts, known, horizon_ms)
        return ClusterTables(
            found,
            rows_to_kept(self._privileged, PRIVILEGED),
            rows_to_kept(self._configs, CONFIG_EVENTS),
            rows_to_kept(self._brokers.ended, BROKER_INTERVALS),
            rows_to_kept(self._brokers.lasting(), BROKER_INTERVALS),
            rows_to_kept(self._brokers.past_days, AVAILABILITY),
            rows_to_kept(newest, AVAILABILITY),
            changes,
            since,
        )

    def _step(self, moment: Moment) -> None:
        self._brokers.step(moment)
        for logged in moment.records:
            record = logged.record
            kind = record.privileged()
            if kind is not None:
                self._privileged.append(self._privileged_row(logged, kind))
            if isinstance(record, ConfigRecord):
                hidden = bool(record.secret_fields())
                value = REDACTED if hidden else record.value
                told: _Told = (
                    config_kind(record.resource_type),
                    record.resource_name,
                    record.name,
                    value,
                )
                self._configs.append(_config_row(moment, logged, told))
            elif isinstance(record, RemoveTopicRecord):
                told = ("topic", self._names.shown(record.topic_id), None, None)
                self._configs.append(_config_row(moment, logged, told))

    def _privileged_row(self, logged: Logged, kind: str) -> tuple[Any, ...]:
        header, time_ms = logged.header, logged.header.timestamp_ms
        said = header.provenance
        return (
            logged.offset,
            time_ms,
            day_text(time_ms // DAY_MS),
            kind,
            resource(logged.record, self._names),
            *_who(header),
            said.auth_method,
            said.client_address,
            header.acted_as,
            fields_text(logged.record),
        )

    def _changes(self, counts: pa.Table, known: Spans, horizon_ms: int) -> tuple[str, pa.Table]:
        """Return the rows of CHANGES from the first day that changed, and that day."""
        carried = self._carried
        if carried.waiting_counts:
            counts = pa.concat_tables([from_ipc(carried.waiting_counts), counts])
        settled, waiting = settled_rows(counts, known)
        carried.waiting_counts = to_ipc(waiting) if waiting.num_rows else b""
        names = [column.name for column in CHANGES.columns]
        tables = [settled.select(names)]
        if carried.changes:
            tables.insert(0, from_ipc(carried.changes))
        rows = pa.concat_tables(tables).group_by(list(_CHANGES_KEY)).aggregate(list(_SUMS))
        rows = rows.rename_columns(names).sort_by([(name, "ascending") for name in _CHANGES_KEY])
        days = rows.column("day")
        today = day_text(horizon_ms // DAY_MS)
        since = pc.min(settled.column("day")).as_py() or today
        open_since = min(today, pc.min(waiting.column("day")).as_py() or today)
        carried.changes = to_ipc(rows.filter(pc.greater_equal(days, open_since)))
        return since, to_kept(rows.filter(pc.greater_equal(days, since)), CHANGES)


def _records(rows: pa.Table) -> Iterator[Record]:
    return map(decode_record, rows.column("record").to_pylist())


def _logged(rows: pa.Table) -> Iterator[Logged]:
    headers: dict[int, BatchHeader] = {}
    columns = rows.select([*FEW_COLUMNS, "settled_base", "settled_ms"])
    for row in columns.to_pylist():
        header = headers.get(row["base_offset"])
        if header is None:
            header = headers[row["base_offset"]] = _header(row)
        record = decode_record(row["record"])
        yield Logged(row["offset"], header, record, SETTLED, row["settled_base"], row["settled_ms"])


def _header(row: dict[str, object]) -> BatchHeader:
    request_id = str(row["request_id"])
    acted_as = str(row["acted_as"])
    said = Provenance(
        principal=str(row["principal"]),
        auth_method=str(row["auth_method"]),
        on_behalf_of=str(row["on_behalf_of"]),
        client_address=str(row["client_address"]),
        request_id=parse_uuid(request_id) if request_id else b"",
        operation=str(row["operation"]),
        reason=str(row["reason"]),
    )
    extensions = {ACTED_AS: acted_as.encode()} if acted_as else {}
    base, time_ms = row["base_offset"], row["timestamp_ms"]
    assert isinstance(base, int)
    assert isinstance(time_ms, int)
    return BatchHeader(base, 0, 0, time_ms, said, b"", extensions)


def _who(header: BatchHeader) -> tuple[str, str, str, str, str]:
    said = header.provenance
    request_id = uuid_text(said.request_id) if said.request_id else ""
    return said.principal, said.on_behalf_of, request_id, said.operation, said.reason


def _config_row(moment: Moment, logged: Logged, told: _Told) -> tuple[Any, ...]:
    header = logged.header
    said = header.provenance
    return (
        logged.offset,
        moment.base,
        moment.time_ms,
        day_text(moment.time_ms // DAY_MS),
        *told,
        *_who(header),
        said.auth_method,
        said.client_address,
        header.acted_as,
    )
