"""Access control entries by uuid (KIP-801), with derived maps for what callers ask often.

Rule: `entries` holds what the records say. Replay derives the rest, which is in no snapshot and no
state hash: the uuids in order, the uuids of the entries with the same content, the resources that
have entries, and the ranges of addresses that entries name. So a check looks up only entries that
may match, however many there are.
"""

from collections.abc import Generator, Iterator
from typing import Final

import msgspec

from metadata.address_ranges import Range, is_range, range_of, ranges_around
from metadata.buckets import BucketMap, mix_bytes, mix_row
from metadata.image.overlay import Overlay
from metadata.image.replay_error import ReplayError
from metadata.image.sorted_keys import SortedKeys
from metadata.image.table import ImageTable, itself, replays
from metadata.records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)

AclContent = tuple[int, int, str, str, str, int, int]
"""Resource type, pattern type, resource name, principal, host, operation, permission."""
AclResource = tuple[int, int, str]
"""Resource type, pattern type, resource name."""


def content_of(entry: AccessControlEntryRecord) -> AclContent:
    """Return all fields of an entry except its uuid."""
    return (
        entry.resource_type,
        entry.pattern_type,
        entry.resource_name,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission_type,
    )


class AclsImage(msgspec.Struct, frozen=True):
    """All access control entries. An entry is its record."""

    entries: BucketMap[bytes, AccessControlEntryRecord]
    ids: SortedKeys[bytes]
    """The uuids of all entries, in order."""
    by_content: BucketMap[AclContent, tuple[bytes, ...]]
    """The uuids of the entries with one content, in order. A log may hold several of them."""
    resources: BucketMap[AclResource, int]
    """How many entries a resource has, for resources that have at least one."""
    ranges: BucketMap[Range, tuple[tuple[str, int], ...]]
    """The hosts that say a range, such as 10.1.2.3/8, each with the number of its entries."""

    def hosts_around(self, address: str) -> Iterator[str]:
        """Yield the hosts of entries that are ranges with this address, the narrowest first."""
        if self.ranges:
            for each in ranges_around(address):
                for host, _ in self.ranges.get(each, ()):
                    yield host

    def first_with(self, content: AclContent) -> AccessControlEntryRecord | None:
        """Return the first entry with this content; None: there is none."""
        ids = self.by_content.get(content)
        return self.entries[ids[0]] if ids else None


EMPTY_ACLS = AclsImage(
    BucketMap(mix_bytes), SortedKeys(), BucketMap(mix_row), BucketMap(mix_row), BucketMap(mix_row)
)


class AclsDelta:
    """Replays the records of access control entries."""

    def __init__(self, image: AclsImage) -> None:
        self._ids = image.ids
        self.entries = Overlay(image.entries)
        self._by_content = Overlay(image.by_content)
        self._resources = Overlay(image.resources)
        self._ranges = Overlay(image.ranges)

    def apply_in_steps(self) -> Generator[None, None, AclsImage]:
        return AclsImage(
            (yield from self.entries.apply_in_steps()),
            (yield from self._ids.changing(self.entries.changed)),
            (yield from self._by_content.apply_in_steps()),
            (yield from self._resources.apply_in_steps()),
            (yield from self._ranges.apply_in_steps()),
        )

    @replays(AccessControlEntryRecord)
    def add_entry(self, record: AccessControlEntryRecord, offset: int) -> None:
        """Add an entry. Its uuid must be new."""
        if record.id in self.entries:
            raise ReplayError(offset, f"there is an access control entry {record.id.hex()} already")
        self.entries.set(record.id, record)
        content = content_of(record)
        ids = self._by_content.get(content) or ()
        self._by_content.set(content, tuple(sorted((*ids, record.id))))
        self._resources.set(content[:3], (self._resources.get(content[:3]) or 0) + 1)
        self._count_range(record.host, 1)

    @replays(RemoveAccessControlEntryRecord)
    def remove_entry(self, record: RemoveAccessControlEntryRecord, offset: int) -> None:
        entry = self.entries.get(record.id)
        if entry is None:
            raise ReplayError(offset, f"there is no access control entry {record.id.hex()}")
        self.entries.remove(record.id)
        content = content_of(entry)
        left = tuple(uuid for uuid in self._by_content.get(content) or () if uuid != record.id)
        if left:
            self._by_content.set(content, left)
        else:
            self._by_content.remove(content)
        count = (self._resources.get(content[:3]) or 1) - 1
        if count:
            self._resources.set(content[:3], count)
        else:
            self._resources.remove(content[:3])
        self._count_range(entry.host, -1)

    def _count_range(self, host: str, more: int) -> None:
        """Note that a host has so many entries more. A text that says no range matches nothing."""
        found = range_of(host) if is_range(host) else None
        if found is None:
            return
        counts = dict(self._ranges.get(found) or ())
        counts[host] = counts.get(host, 0) + more
        left = tuple(sorted(item for item in counts.items() if item[1]))
        if left:
            self._ranges.set(found, left)
        else:
            self._ranges.remove(found)


TABLES: Final = (ImageTable("acls", "acls", "entries", itself, "acl", ("id",)),)
