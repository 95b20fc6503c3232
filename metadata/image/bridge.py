"""The bridge to a store that is moved here: who leads, and the brokers that the source knows.

Rule: only controllers hold it. A snapshot for brokers leaves it out. A legacy broker is no broker
of this cluster: it has no session, no lease and leads nothing here (ADR 0062).
"""

from collections.abc import Callable, Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_int, mix_text
from metadata.image.open_maps import OpenMap
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.table import ImageTable, itself, replays
from metadata.records import BridgeMode, BridgeRecord, LegacyBrokerRecord

_SOURCE: Final = "source"


class BridgeImage(msgspec.Struct, frozen=True):
    """The state of the bridge, and the legacy brokers by id."""

    states: BucketMap[str, BridgeRecord]
    legacy_brokers: BucketMap[int, LegacyBrokerRecord]

    @property
    def state(self) -> BridgeRecord | None:
        """The last `BridgeRecord`; None: there never was a bridge."""
        return self.states.get(_SOURCE)

    @property
    def mode(self) -> int:
        """A `BridgeMode`."""
        state = self.state
        return BridgeMode.NONE if state is None else state.mode


EMPTY_BRIDGE = BridgeImage(BucketMap(mix_text), BucketMap(mix_int))


class BridgeDelta:
    """Replays the records of the bridge."""

    def __init__(self, image: BridgeImage) -> None:
        self.states = Overlay(image.states)
        self.legacy_brokers = Overlay(image.legacy_brokers)

    def apply_in_steps(self) -> Generator[None, None, BridgeImage]:
        return BridgeImage(
            (yield from self.states.apply_in_steps()),
            (yield from self.legacy_brokers.apply_in_steps()),
        )

    def opened(self, built: Callable[[], BridgeImage]) -> BridgeImage:
        """Return the image of what was replayed so far (see `open_maps`)."""
        return BridgeImage(
            OpenMap(self.states, lambda: built().states),
            OpenMap(self.legacy_brokers, lambda: built().legacy_brokers),
        )

    @replays(BridgeRecord)
    def set_state(self, record: BridgeRecord, offset: int) -> None:
        """Note who leads, and how far the bridge has come."""
        self.states.set(_SOURCE, record)

    @replays(LegacyBrokerRecord)
    def set_legacy_broker(self, record: LegacyBrokerRecord, offset: int) -> None:
        """Note a broker of the source, or that it is gone."""
        if not record.remove:
            self.legacy_brokers.set(record.broker_id, record)
        elif record.broker_id in self.legacy_brokers:
            self.legacy_brokers.remove(record.broker_id)
        else:
            raise ReplayError(offset, f"there is no legacy broker {record.broker_id}")


TABLES: Final = (
    ImageTable("bridge", "bridge", "states", itself, "bridge", controllers_only=True),
    ImageTable(
        "legacy_brokers",
        "bridge",
        "legacy_brokers",
        itself,
        "legacy-broker",
        ("broker_id",),
        controllers_only=True,
    ),
)
