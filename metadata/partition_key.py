"""The key of a partition: the id of its topic, and its number within the topic."""

from typing import NamedTuple


class PartitionKey(NamedTuple):
    """A partition, for programs that use an image or an agent."""

    topic_id: bytes
    """16 bytes; `metadata.uuids` converts it to text."""
    partition: int


PlainPartitionKey = tuple[bytes, int]
"""The key as a plain tuple. It equals the PartitionKey, so a map finds one by the other. The maps
of an image hold plain tuples, because Python's garbage collector stops tracking those. With a
million keys of the class above, a full collection takes 90 ms instead of 1 ms."""
