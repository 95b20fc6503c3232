"""Fills the ISRs of a broker that holds no data, such as the brokers of `logberg up`.

Rule: a replica without data has nothing to catch up with, so every replica whose broker is online
is in sync. The broker asks for them whenever it leads a partition whose ISR lacks one. It never
asks for a smaller ISR: the controller itself takes out brokers that are fenced or stopping.
"""

from collections.abc import Iterator

from broker_agent.isr_requests import IsrRequests
from broker_agent.publishers import Manifest
from metadata.image import BrokerRegistration, MetadataImage
from metadata.partition_key import PartitionKey


class IsrWithoutData:
    """A publisher that asks for ISRs with all online replicas."""

    def __init__(self, broker_id: int, isr: IsrRequests) -> None:
        self._broker_id = broker_id
        self._isr = isr

    def on_metadata(self, before: MetadataImage, after: MetadataImage, manifest: Manifest) -> None:
        """Look at partitions that changed, and at replicas of brokers that came online."""
        for key in set(self._touched(before, after, manifest)):
            partition = after.topics.partitions.get(key)
            if partition is None or partition.leader != self._broker_id:
                continue
            brokers = after.cluster.brokers
            online = {
                replica: broker.broker_epoch
                for replica in partition.replicas
                if (broker := brokers.get(replica)) is not None and _is_online(broker)
            }
            if self._broker_id in online and not online.keys() <= set(partition.isr):
                self._isr.ask(PartitionKey(*key), online)

    def _touched(
        self, before: MetadataImage, after: MetadataImage, manifest: Manifest
    ) -> Iterator[tuple[bytes, int]]:
        if manifest.replaced:
            yield from after.topics.replicas_of(self._broker_id)
            return
        yield from after.topics.partitions.changed_since(before.topics.partitions)
        for change in after.cluster.brokers.changes_since(before.cluster.brokers):
            was_online = change.before is not None and _is_online(change.before)
            if change.after is not None and _is_online(change.after) and not was_online:
                yield from after.topics.replicas_of(change.key)


def _is_online(broker: BrokerRegistration) -> bool:
    return not (broker.fenced or broker.in_controlled_shutdown)
