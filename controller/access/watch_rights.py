"""What a watcher of one resource may see of the records about it (ADR 0092).

Rule: whoever may read the log sees every record, and who made the change, from where and why.
Whoever may only describe the watched topic sees a record if the route that shows what it says would
show it: entries need DESCRIBE on the cluster, configs need DESCRIBE_CONFIGS. Such a watcher hears
nothing of who made a change, because only the log says so. A kind of record that is not in the
table needs the right on the log.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from controller.access.guard import RequestAccess
from controller.access.rights import (
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    READ_AUDIT,
    AnyOf,
    on_topic,
)
from metadata.image import MetadataImage
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
)

Kinds = frozenset[type[Record]]
_TOPICS: Final[Kinds] = frozenset(
    (TopicRecord, PartitionRecord, PartitionChangeRecord, RemoveTopicRecord, ClearElrRecord)
)
_CONFIGS: Final[Kinds] = frozenset((ConfigRecord,))
_ENTRIES: Final[Kinds] = frozenset((AccessControlEntryRecord, RemoveAccessControlEntryRecord))


class WatchRights(NamedTuple):
    """What one watcher may see."""

    reads_log: bool
    """The watcher sees everything that the log says about the resource."""
    kinds: Kinds = frozenset()
    """The kinds of records that the watcher sees otherwise."""

    def show(self, record: Record) -> bool:
        """Return whether the watcher may see a record about the resource."""
        return self.reads_log or type(record) in self.kinds


EVERYTHING: Final = WatchRights(reads_log=True)


def rights_of_watcher(
    access: RequestAccess | None, image: MetadataImage, topic: str
) -> WatchRights:
    """Return what the asker of a watch may see, by the entries of an image.

    `access` None: nothing is judged. `topic`: the watched topic's name; empty for other resources.
    """
    if access is None or access.has(image, (READ_AUDIT,)):
        return EVERYTHING
    found: Kinds = frozenset()
    if topic:
        found = found.union(
            *(kinds for kinds, need in needs_of_records(topic) if access.has(image, need))
        )
    return WatchRights(reads_log=False, kinds=found)


def needs_of_records(topic: str) -> Iterator[tuple[Kinds, AnyOf]]:
    """Yield kinds of records about a topic, with what the route that shows them needs."""
    yield _TOPICS, (on_topic(AclOperation.DESCRIBE, topic),)
    yield _CONFIGS, (on_topic(AclOperation.DESCRIBE_CONFIGS, topic), DESCRIBE_CONFIGS)
    yield _ENTRIES, (DESCRIBE_CLUSTER,)
