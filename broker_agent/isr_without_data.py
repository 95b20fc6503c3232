"""Fills the ISRs of a broker that holds no data, such as the brokers of `logberg up`.

Rule: a replica without data has nothing to catch up with, so every replica whose broker is online
is in sync. The broker asks for them whenever it leads a partition whose ISR lacks one. It never
asks for a smaller ISR: the controller itself takes out brokers that are fenced or stopping.
"""

from collections.abc import Generator, Iterator

from broker_agent.isr_requests import IsrRequests
from broker_agent.publishers import Manifest
from metadata.image import BrokerRegistration, MetadataImage
from metadata.partition_key import PartitionKey, PlainPartitionKey

_STEP = 64
"""Partitions between two yields."""


class IsrWithoutData:
    """A publisher that asks for ISRs with all online replicas."""

    def __init__(self, broker_id: int, isr: IsrRequests) -> None:
        self._broker_id = broker_id
        self._isr = isr

    def on_metadata(
        self, before: MetadataImage, after: MetadataImage, manifest: Manifest
    ) -> Generator[None, None, None]:
        """Look at partitions that changed, and at replicas of brokers that came online."""
        for number, key in enumerate(self._touched(before, after, manifest), start=1):
            if key is not None:
                self._look(after, key)
            if number % _STEP == 0:
                yield

    def _look(self, image: MetadataImage, key: PlainPartitionKey) -> None:
        partition = image.topics.partitions.get(key)
        if partition is None or partition.leader != self._broker_id:
            return
        brokers = image.cluster.brokers
        online = {
            replica: broker.broker_epoch
            for replica in partition.replicas
            if (broker := brokers.get(replica)) is not None and _is_online(broker)
        }
        if self._broker_id in online and not online.keys() <= set(partition.isr):
            self._isr.ask(PartitionKey(*key), online)

    def _touched(
        self, before: MetadataImage, after: MetadataImage, manifest: Manifest
    ) -> Iterator[PlainPartitionKey | None]:
        """Yield partitions, some of them twice, and None in between."""
        if manifest.replaced:
            yield from after.topics.held_by(self._broker_id)
            return
        for change in after.topics.partitions.differences(before.topics.partitions):
            yield None if change is None else change.key
        for broker in after.cluster.brokers.changes_since(before.cluster.brokers):
            was_online = broker.before is not None and _is_online(broker.before)
            if broker.after is not None and _is_online(broker.after) and not was_online:
                yield from after.topics.held_by(broker.key)


def _is_online(broker: BrokerRegistration) -> bool:
    return not (broker.fenced or broker.in_controlled_shutdown)
