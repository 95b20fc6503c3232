"""The fold of brokers: from settled registrations to intervals and availability.

Rule: registrations are read as the controllers' replay reads them. A fenced broker is `fenced` even
if it is stopping too. Below `logberg.version` 1, a repeated registration of the same incarnation
keeps the broker's flags (ADR 0015). States are compared at the end of each moment.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from audit.reading.settling import Moment
from audit.spark.days import DAY_MS, FENCED, PRESENT, DaySums, day_text
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

Row = tuple[object, ...]

_FENCED: Final = "fenced"
_STOPPING: Final = "stopping"
_ONLINE: Final = "online"


class BrokerNow(msgspec.Struct, array_like=True, eq=False):
    """A broker: what its registration says now, and since when its interval lasts."""

    sums: DaySums
    incarnation: bytes | None = None
    """None: it is not registered."""
    fenced: bool = False
    stopping: bool = False
    shown: str = ""
    """The state of its interval; empty: none lasts."""
    from_offset: int = 0
    from_ms: int = 0

    @property
    def state(self) -> str:
        """Its state now; empty if it is not registered."""
        if self.incarnation is None:
            return ""
        if self.fenced:
            return _FENCED
        return _STOPPING if self.stopping else _ONLINE


class BrokersCarried(msgspec.Struct):
    """What is carried to the next micro-batch."""

    brokers: dict[int, BrokerNow] = {}
    literal: bool = False
    """Registrations count as they stand (ADR 0015)."""


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
