"""Remembers where in the log each resource changed last, for conditional changes (ADR 0034).

Rule: the offset of a resource's last change is exact if the resource is remembered. All others have
not changed since `floor`. Only the leader remembers, from the beginning of its epoch on, and it
includes what it has proposed and not yet seen committed. The state has no such offsets: they are in
no record, no snapshot and no state hash.

A change costs one entry for each resource that it touches. Beyond `KEPT_MAX` entries the oldest is
forgotten, and the floor rises to it.
"""

from collections import OrderedDict
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final

from controller.leader.resources import Resource, resources_of
from metadata.image import MetadataImage
from metadata.records import Record

KEPT_MAX: Final = 65_536
"""The most resources that are remembered: about 15 MB."""
_STEP: Final = 64


class LastChanges:
    """The offsets of the last changes, newest last."""

    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._at: OrderedDict[Resource, int] = OrderedDict()
        self.floor = 0
        """Nothing is known of changes before this offset."""

    def begin(self, offset: int) -> None:
        """A new epoch begins at this offset: what was proposed before may never have happened."""
        self._at.clear()
        self.floor = offset

    def of(self, resource: Resource) -> int | None:
        """Return the offset of the last change; None: there is none from `floor` on."""
        return self._at.get(resource)

    def since(self, offset: int) -> Iterator[Resource]:
        """Yield the resources whose last change is at or behind `offset`, the newest first."""
        for resource in reversed(self._at):
            if self._at[resource] < offset:
                return
            yield resource

    def note(
        self, records: Sequence[Record], base_offset: int, before: MetadataImage
    ) -> Generator[None, None, None]:
        """Note records that were proposed on top of `before`. Yields after every 64 of them."""
        view = before if before.transaction is None else before.transaction.branch
        for number, record in enumerate(records, start=1):
            self._note(resources_of(record, view), base_offset + number - 1)
            if number % _STEP == 0:
                yield

    def note_found(self, found: Iterable[tuple[Resource, ...] | None], base_offset: int) -> None:
        """Note a few records that were proposed, by what each changes (`resources_of`)."""
        for offset, resources in enumerate(found, base_offset):
            self._note(resources, offset)

    def _note(self, resources: tuple[Resource, ...] | None, offset: int) -> None:
        if resources is None:
            self._at.clear()
            self.floor = offset + 1
            return
        at = self._at
        for resource in resources:
            at[resource] = offset
            at.move_to_end(resource)
        while len(at) > self._kept_max:
            _, forgotten = at.popitem(last=False)
            self.floor = max(self.floor, forgotten + 1)
