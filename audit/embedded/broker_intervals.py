"""The job `broker_intervals`: when each broker was fenced, online or stopping.

Rule: registrations are read as the controllers' replay reads them. A fenced broker is `fenced` even
if it is stopping too. A registration sets the flags. Below `logberg.version` 1, a repeated
registration of the same incarnation keeps the broker's flags (ADR 0015). States are compared at the
end of each moment.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from audit.reading.feed import Feed, Question
from metadata.features import LITERAL_AMENDMENTS_FROM, LOGBERG_VERSION
from metadata.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    FencingChange,
    Record,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

Row = tuple[Any, ...]

FENCED: Final = "fenced"
ONLINE: Final = "online"
STOPPING: Final = "stopping"


class BrokerInterval(NamedTuple):
    """A row of `audit.tables.BROKER_INTERVALS`."""

    broker_id: int
    from_offset: int
    until_offset: int | None
    from_ms: int
    until_ms: int | None
    state: str


def broker_intervals(question: Question) -> list[Row]:
    """Return the rows of `audit.tables.BROKER_INTERVALS`."""
    brokers = BrokerTracker()
    rows: list[Row] = []
    for turn in Feed(question).turns():
        rows += brokers.step(*turn)
    rows += brokers.still_open()
    rows.sort(key=lambda row: row[:2])
    return rows


class _Flags(NamedTuple):
    incarnation_id: bytes
    fenced: bool
    stopping: bool

    @property
    def state(self) -> str:
        if self.fenced:
            return FENCED
        return STOPPING if self.stopping else ONLINE


class BrokerTracker:
    """All registered brokers, and since when each is in its state."""

    def __init__(self) -> None:
        self._flags: dict[int, _Flags] = {}
        self._begun: dict[int, tuple[int, int, str]] = {}
        self._touched: dict[int, None] = {}
        self._literal = False
        self._rules: dict[type[Record], Callable[[Any], None]] = {
            BrokerRegistrationChangeRecord: self._change,
            RegisterBrokerRecord: self._register,
            FeatureLevelRecord: self._set_feature,
            UnregisterBrokerRecord: self._unregister,
            FenceBrokerRecord: lambda record: self._fence(record.id, fenced=True),
            UnfenceBrokerRecord: lambda record: self._fence(record.id, fenced=False),
        }

    def step(self, base: int, time_ms: int, records: Iterable[Record]) -> Iterator[BrokerInterval]:
        """Apply all records of a moment; yield the intervals that it ends."""
        rules = self._rules
        for record in records:
            rule = rules.get(type(record))
            if rule is not None:
                rule(record)
        for broker_id in self._touched:
            flags, before = self._flags.get(broker_id), self._begun.get(broker_id)
            state = None if flags is None else flags.state
            if before is not None:
                if state == before[2]:
                    continue
                yield BrokerInterval(broker_id, before[0], base, before[1], time_ms, before[2])
                del self._begun[broker_id]
            if state is not None:
                self._begun[broker_id] = (base, time_ms, state)
        self._touched.clear()

    def still_open(self) -> Iterator[BrokerInterval]:
        """Yield the intervals that have no end."""
        for broker_id, (offset, time_ms, state) in self._begun.items():
            yield BrokerInterval(broker_id, offset, None, time_ms, None, state)

    def _register(self, record: RegisterBrokerRecord) -> None:
        before = self._flags.get(record.broker_id)
        same = before is not None and before.incarnation_id == record.incarnation_id
        if self._literal or not same:
            flags = (record.incarnation_id, record.fenced, record.in_controlled_shutdown)
            self._set(record.broker_id, _Flags(*flags))

    def _set_feature(self, record: FeatureLevelRecord) -> None:
        if record.name == LOGBERG_VERSION:
            self._literal = record.feature_level >= LITERAL_AMENDMENTS_FROM

    def _unregister(self, record: UnregisterBrokerRecord) -> None:
        del self._flags[record.broker_id]
        self._touched[record.broker_id] = None

    def _fence(self, broker_id: int, *, fenced: bool) -> None:
        self._set(broker_id, self._flags[broker_id]._replace(fenced=fenced))

    def _change(self, record: BrokerRegistrationChangeRecord) -> None:
        flags = self._flags[record.broker_id]
        if record.fenced != FencingChange.NONE:
            flags = flags._replace(fenced=record.fenced == FencingChange.FENCE)
        if record.in_controlled_shutdown:
            flags = flags._replace(stopping=True)
        self._set(record.broker_id, flags)

    def _set(self, broker_id: int, flags: _Flags) -> None:
        self._flags[broker_id] = flags
        self._touched[broker_id] = None
