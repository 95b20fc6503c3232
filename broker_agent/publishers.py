"""Calls the host's publishers with each new image, in order.

Rule: the agent calls the publishers one after another, in the order they were given, once for every
step from one image to the next. An image that replaces another (a snapshot) is a step too, with
`replaced` set. A publisher never gets an older image after a newer one. The agent logs and counts
an exception of a publisher and still calls the others, so one component of the host can't stop the
metadata of all.

A publisher that has much to do at a large step returns a generator that yields often. The agent
runs it in slices between other work of the event loop, and goes on when the generator has ended.

`PartitionDuties` turns the steps into what a broker must do: lead, follow or drop a partition,
each with its leader epoch.
"""

from collections.abc import Generator, Iterator
from heapq import merge
from typing import Protocol

import msgspec

from metadata.image import MetadataImage
from metadata.key_runs import sorted_keys
from metadata.partition_key import PartitionKey, PlainPartitionKey

NO_LEADER = -1


class Manifest(msgspec.Struct, frozen=True):
    """Describes a step from one image to the next."""

    offset: int
    """The image holds the records below this offset, without those of an open transaction."""
    epoch: int
    timestamp_ms: int
    """The timestamp of the newest batch in ms since 1970, as its leader wrote it."""
    replaced: bool
    """True: a snapshot replaced the image, so the step is not a sequence of batches."""


class Publisher(Protocol):
    """A part of the host that follows the metadata."""

    def on_metadata(
        self, before: MetadataImage, after: MetadataImage, manifest: Manifest
    ) -> Generator[None, None, None] | None:
        """The image `after` follows `before`. Return soon: it runs on the agent's event loop.

        If there is much to do, return a generator that yields at least every 5 ms; its code may
        see that the agent has ended.
        """


class Duties(Protocol):
    """What a broker must do with its partitions. The host implements these methods.

    If a method raises, the agent logs the error and calls the partition's duty again at the next
    step. So the same call may come twice.
    """

    def lead(self, partition: PartitionKey, topic: str, leader_epoch: int) -> None:
        """Become the leader at this leader epoch, or stay it."""

    def follow(self, partition: PartitionKey, topic: str, leader: int, leader_epoch: int) -> None:
        """Follow `leader`, a broker id (-1: there is no leader), at this leader epoch."""

    def drop(self, partition: PartitionKey) -> None:
        """The partition is deleted, or this broker has no replica of it any more."""


class PartitionDuties:
    """A publisher that calls a host's `Duties` when a partition of this broker changes.

    It calls a method that raised again at the next step.
    """

    def __init__(self, broker_id: int, duties: Duties) -> None:
        self._broker_id = broker_id
        self._duties = duties
        self._told: dict[PartitionKey, tuple[int, int]] = {}
        self._owed: set[PartitionKey] = set()

    def on_metadata(
        self, before: MetadataImage, after: MetadataImage, manifest: Manifest
    ) -> Generator[None, None, None]:
        """Tell the host, sorted by topic id and partition. Raises ExceptionGroup at the end."""
        changed = yield from sorted_keys(self._concerned(before, after, manifest))
        owed, self._owed = self._owed, set()
        failures: list[Exception] = []
        last: PlainPartitionKey | None = None
        for plain in merge(changed.in_order(), sorted(owed)):
            if plain == last:
                continue
            last, key = plain, PartitionKey(*plain)
            try:
                self._tell(key, after, again=key in owed)
            except Exception as error:  # noqa: BLE001 - one partition must not stop the others
                self._owed.add(key)
                failures.append(error)
            yield
        if failures:
            raise ExceptionGroup("the host failed at partitions", failures)

    def _concerned(
        self, before: MetadataImage, after: MetadataImage, manifest: Manifest
    ) -> Iterator[PlainPartitionKey | None]:
        """Yield the partitions whose change may concern this broker, and None in between."""
        if manifest.replaced:
            yield from after.topics.held_by(self._broker_id)
            yield from list(self._told)
            return
        for change in after.topics.partitions.differences(before.topics.partitions):
            ours = change is not None and (
                change.key in self._told
                or (change.after is not None and self._broker_id in change.after.replicas)
            )
            yield change.key if change is not None and ours else None

    def _tell(self, key: PartitionKey, image: MetadataImage, *, again: bool) -> None:
        partition = image.topics.partitions.get(key)
        if partition is None or self._broker_id not in partition.replicas:
            if key in self._told:
                self._duties.drop(key)
                del self._told[key]
            return
        duty = (partition.leader, partition.leader_epoch)
        if self._told.get(key) == duty and not again:
            return
        topic = image.topics.by_id[key.topic_id].name
        # Note the call before it is made: if it fails halfway, a later `drop` must still be called.
        self._told[key] = duty
        if partition.leader == self._broker_id:
            self._duties.lead(key, topic, partition.leader_epoch)
        else:
            self._duties.follow(key, topic, partition.leader, partition.leader_epoch)
