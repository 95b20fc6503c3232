"""The deltas of all families over one image.

`MetadataDelta` has one branch, and a second one while a transaction is open. Rule: a family's delta
is created at the first record that concerns the family, so a single change pays only for what it
touches. The new state hash is computed from the overlays: for each entry that changed, subtract the
hash of the old record and add that of the new one.
"""

from collections.abc import Callable, Generator
from itertools import islice
from typing import Any

import msgspec

from metadata.buckets import STEP
from metadata.image.families import DELTAS, REPLAY, TABLES_OF
from metadata.image.metadata_image import MetadataImage, OpenTransaction
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.records import Record
from metadata.state_hash import StateHash, part_of

Handler = Callable[[Any, int], object]


class _Handlers(dict[type[Record], Handler]):
    """Maps a record's class to the method that replays it. Binds the method at its first use."""

    def __init__(self, own: dict[type[Record], Handler], branch: "Branch") -> None:
        super().__init__(own)
        self._branch: Branch | None = branch

    def release(self) -> None:
        """Drop the bound methods after the last replay, so that no reference cycle stays."""
        self.clear()
        self._branch = None

    def __missing__(self, kind: type[Record]) -> Handler:
        if kind not in REPLAY:
            return _refuse
        assert self._branch is not None, "this delta was applied; it can't replay any more"
        family, method = REPLAY[kind]
        handler: Handler = getattr(self._branch.family(family), method)
        self[kind] = handler
        return handler


def _refuse(record: Record, offset: int) -> None:
    raise ReplayError(offset, f"no rule replays a {type(record).__name__}")


class Branch:
    """The changes over the image `base`."""

    def __init__(
        self,
        base: MetadataImage,
        own_handlers: dict[type[Record], Handler],
        interned: dict[Any, Any],
        unsettled: list[int],
        with_state_hash: bool,
    ) -> None:
        self.base = base
        self.handlers = _Handlers(own_handlers, self)
        self._deltas: dict[str, Any] = {}
        self._interned = interned
        self._unsettled = unsettled
        self._with_state_hash = with_state_hash
        self._opened: dict[str, Any] = {}

    def family(self, name: str) -> Any:
        """Return the delta of a family; create it at the first call."""
        delta = self._deltas.get(name)
        if delta is None:
            arguments: tuple[Any, ...] = (getattr(self.base, name),)
            if name == "topics":
                arguments += (self._interned,)
            elif name == "cluster":
                arguments += (self._unsettled, self.family("features").levels)
            delta = self._deltas[name] = DELTAS[name](*arguments)
        return delta

    def evict(self, timestamp_ms: int) -> None:
        """Evict old request outcomes at the end of a batch with this timestamp."""
        if "outcomes" in self._deltas or len(self.base.outcomes):
            self.family("outcomes").evict(timestamp_ms)

    def overlay(self, family: str, name: str) -> Overlay[Any, Any] | None:
        """Return the overlay of a family's map; None: no record concerned the family."""
        delta = self._deltas.get(family)
        return None if delta is None else getattr(delta, name)

    def opened(
        self, offset: int, epoch: int, timestamp_ms: int, built: Callable[[], MetadataImage]
    ) -> MetadataImage:
        """Return an image of what was replayed so far; see `MetadataDelta.opened`."""
        opened = self._opened
        if len(opened) < len(self._deltas):
            for name, delta in self._deltas.items():
                if name not in opened:
                    opened[name] = delta.opened(lambda name=name: getattr(built(), name))
        return msgspec.structs.replace(
            self.base,
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            state_hash=None,
            **opened,
        )

    def emptied(self) -> Generator[None, None, None]:
        """Free the changes in steps. The branch can't be used afterwards."""
        if "topics" in self._deltas:
            yield from self._deltas["topics"].emptied()

    def build(
        self, offset: int, epoch: int, timestamp_ms: int, transaction: OpenTransaction | None
    ) -> Generator[None, None, MetadataImage]:
        """Return the image with all changes, in steps; see `MetadataDelta.apply_in_steps`."""
        families: dict[str, Any] = {}
        for name, delta in self._deltas.items():
            families[name] = yield from delta.apply_in_steps()
        state_hash = None
        if self._with_state_hash:
            state_hash = yield from self._state_hash()
        return msgspec.structs.replace(
            self.base,
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            transaction=transaction,
            state_hash=state_hash,
            interned=self._interned,
            **families,
        )

    def _state_hash(self) -> Generator[None, None, StateHash]:
        before = self.base.state_hash
        assert before is not None
        sums = [0, 0]
        for family, delta in self._deltas.items():
            for table in TABLES_OF[family]:
                overlay: Overlay[Any, Any] = getattr(delta, table.map)
                if overlay.changed:
                    added = yield from _difference(overlay, table.records)
                    sums[table.controllers_only] += added
        return before.plus(*sums)


def _difference(
    overlay: Overlay[Any, Any], records: Callable[[Any, Any], tuple[Record, ...]]
) -> Generator[None, None, int]:
    """Return the number that an overlay adds to a sum of the state hash."""
    if not len(overlay.base):
        return (yield from _sum(overlay, records))
    total = 0
    get = overlay.base.get
    for number, (key, after) in enumerate(overlay.changed.items(), 1):
        if number % STEP == 0:
            yield
        before = get(key)
        if before is after:
            continue
        if before is not None:
            total -= part_of(records(key, before))
        if after is not None:
            total += part_of(records(key, after))
    return total


def _sum(
    overlay: Overlay[Any, Any], records: Callable[[Any, Any], tuple[Record, ...]]
) -> Generator[None, None, int]:
    """Return the same for an overlay over an empty map, as in a load: there are no old records."""
    total = 0
    entries = iter(overlay.changed.items())
    while True:
        some = list(islice(entries, STEP))
        total += part_of(
            record for key, value in some if value is not None for record in records(key, value)
        )
        if len(some) < STEP:
            return total
        yield
