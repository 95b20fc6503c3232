"""Checks what would be lost if a broker were forgotten.

Without `force`, a broker is not forgotten while it is online, nor while it is the last in-sync
replica of a partition. The first would take leaders away from a process that serves. The second
would leave a partition without a copy that is known to be complete.
"""

from collections.abc import Generator
from heapq import nsmallest

from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.brokers import BrokerRegistration
from metadata.partition_key import PlainPartitionKey

_NAMED = 5
"""How many partitions an error names."""
_STEP = 64


def check_nothing_lost(
    image: MetadataImage, broker: BrokerRegistration
) -> Generator[None, None, None]:
    """Raise LogbergError POLICY_VIOLATION if forgetting the broker needs force.

    Looks only at the broker's own replicas, and yields every 256 of them.
    """
    last = 0
    # Name the first partitions by key: the order of the loop differs from process to process.
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
            f"broker {broker.broker_id} is not forgotten: {'; '.join(reasons)}. To forget it "
            "anyway, repeat with force=true (--force)",
            {**details, "partitions": ",".join(named)},
        )


def _partitions(count: int) -> str:
    return f"{count} partition{'' if count == 1 else 's'}"
