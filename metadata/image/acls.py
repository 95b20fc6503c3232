"""Access control entries by their uuid (KIP-801)."""

from collections.abc import Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_bytes
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.table import ImageTable, itself, replays
from metadata.records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)


class AclsImage(msgspec.Struct, frozen=True):
    """Every access control entry; an entry is what its record says."""

    entries: BucketMap[bytes, AccessControlEntryRecord]


EMPTY_ACLS = AclsImage(BucketMap(mix_bytes))


class AclsDelta:
    """Replay of access control entries."""

    def __init__(self, image: AclsImage) -> None:
        self.entries = Overlay(image.entries)

    def apply_in_steps(self) -> Generator[None, None, AclsImage]:
        return AclsImage((yield from self.entries.apply_in_steps()))

    @replays(AccessControlEntryRecord)
    def add_entry(self, record: AccessControlEntryRecord, offset: int) -> None:
        """An entry is added; its uuid must be new."""
        if record.id in self.entries:
            raise ReplayError(offset, f"there is an access control entry {record.id.hex()} already")
        self.entries.set(record.id, record)

    @replays(RemoveAccessControlEntryRecord)
    def remove_entry(self, record: RemoveAccessControlEntryRecord, offset: int) -> None:
        if record.id not in self.entries:
            raise ReplayError(offset, f"there is no access control entry {record.id.hex()}")
        self.entries.remove(record.id)


TABLES: Final = (ImageTable("acls", "acls", "entries", itself, "acl", ("id",)),)
