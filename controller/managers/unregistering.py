"""What would be lost with a broker that somebody wants forgotten.

Rule: forgetting an online broker, or the last replica in sync of a partition, is refused unless it
is forced. The first takes leaders away from a process that serves; the second leaves a partition
without a copy that is known to be whole.
"""

from collections.abc import Generator
from heapq import nsmallest

from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.cluster import BrokerRegistration
from metadata.partition_key import PlainPartitionKey

_NAMED = 5
"""Partitions that an error names."""
_STEP = 256


def check_nothing_lost(
    image: MetadataImage, broker: BrokerRegistration
) -> Generator[None, None, None]:
    """Raise LogbergError (POLICY_VIOLATION) when forgetting the broker needs force.

    Looks at the broker's own replicas only, and yields every 256 of them.
    """
    last = 0
    # The first ones by key: in which order they are met depends on the process.
    first: list[PlainPartitionKey] = []
    for number, key in enumerate(image.topics.held_by(broker.broker_id), start=1):
        partition = image.topics.partitions[key]
        if {*partition.isr, *partition.elr} == {broker.broker_id}:
            last += 1
            first = nsmallest(_NAMED, (*first, key))
        if number % _STEP == 0:
            yield
    named = [f"{image.topics.by_id[topic_id].name}-{n}" for topic_id, n in first]
    reasons = []
    if not broker.fenced:
        leads = image.topics.leads(broker.broker_id)
        reasons.append(f"it is online and leads {_partitions(leads)}: stop it first")
    if last:
        more = f" and {last - len(named)} more" if last > len(named) else ""
        reasons.append(
            f"{_partitions(last)} would lose the last in-sync replica: {', '.join(named)}{more}"
        )
    if reasons:
        details = {"online": str(not broker.fenced).lower(), "lastInSync": str(last)}
        raise LogbergError(
            ErrorCode.POLICY_VIOLATION,
            f"broker {broker.broker_id} is not forgotten: {'; '.join(reasons)}. To forget it all "
            "the same, repeat with force=true (--force)",
            {**details, "partitions": ",".join(named)},
        )


def _partitions(count: int) -> str:
    return f"{count} partition{'' if count == 1 else 's'}"
