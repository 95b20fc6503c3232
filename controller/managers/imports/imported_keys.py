"""Compares imported keys of coordination with those of an image.

A key's revisions are offsets of our log, so those of the source can't be kept: a key that is
written here begins at version 1. Rule: the limits of an ordinary commit hold for each key and for
the store; an import only may have more keys than one commit.
"""

from collections.abc import Sequence
from typing import overload

import msgspec

from controller.config import CoordinationLimits
from controller.managers.coordination.limits import check_name, check_room, check_size
from controller.managers.imports.comparison import ImportComparison
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.image.coordination import KEYS, key_bytes
from metadata.records import KeyRecord, Record

_SHOWN = 200
"""The most characters of a key's name in a conflict."""


class KeyImport:
    """Compares keys, one after the other."""

    def __init__(
        self, image: MetadataImage, comparison: ImportComparison, limits: CoordinationLimits
    ) -> None:
        self._state = image.coordination
        self._comparison = comparison
        self._limits = limits
        self._names: set[str] = set()
        self._bytes = 0
        self.missing: list[KeyRecord] = []

    def compare(self, record: KeyRecord) -> None:
        """Write a key that is missing. One that is here must have the same value."""
        name = f"key {record.key[:_SHOWN]}"
        try:
            check_name("the key", record.key, self._limits.key_bytes)
            check_size("the value", record.value, self._limits.value_bytes)
        except LogbergError as error:
            self._comparison.refuse(name, error)
            return
        if record.key in self._names:
            self._comparison.refuse(name, "it is in the import twice")
            return
        self._names.add(record.key)
        here = self._state.keys.get(record.key)
        if here is None:
            self.missing.append(record)
            self._bytes += key_bytes(record)
        elif here.value == record.value:
            self._comparison.same += 1
        else:
            self._comparison.refuse(
                name, f"it has another value here, since revision {here.mod_revision}"
            )

    def check_room(self) -> None:
        """Refuse the import if the store has no room for what is missing."""
        try:
            check_room(self._state, self._limits, KEYS, len(self.missing), self._bytes)
        except LogbergError as error:
            self._comparison.refuse("keys", error)


class KeysAtOffset(Sequence[Record]):
    """The records of an import with keys, whose revisions depend on where they stand in the log.

    A key's record is made when it is asked for. So the same import at another offset costs nothing,
    however large it is.
    """

    def __init__(
        self,
        others: Sequence[Record],
        keys: Sequence[KeyRecord],
        lifted: Sequence[Record],
        first: int,
    ) -> None:
        """`first` is the offset of the first key; `others` come before it, `lifted` at the end."""
        self._others = others
        self._keys = keys
        self._lifted = lifted
        self._first = first

    def __len__(self) -> int:
        return len(self._others) + len(self._keys) + len(self._lifted)

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        number = index - len(self._others)
        if number < 0:
            return self._others[index]
        if number >= len(self._keys):
            return self._lifted[number - len(self._keys)]
        offset = self._first + number
        return msgspec.structs.replace(
            self._keys[number], create_revision=offset, mod_revision=offset, version=1
        )
