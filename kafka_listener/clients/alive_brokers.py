"""The brokers that clients may use, with the address of the listener that a client came through.

Rule, as in Kafka's KRaftMetadataCache: a broker is alive for clients of a listener if it is not
fenced and has an endpoint of that listener's name. Brokers in controlled shutdown are alive.
"""

from collections.abc import Iterator

from kafka_listener.wire.schema import Fields
from metadata.image import MetadataImage
from metadata.image.brokers import BrokerRegistration
from metadata.records import BrokerEndpoint

NOBODY = -1


class AliveBrokers:
    """The brokers of one image that are alive for the clients of one listener."""

    def __init__(self, image: MetadataImage, listener: str) -> None:
        self._brokers = image.cluster.brokers
        self._ids = image.cluster.ids
        self._listener = listener

    def endpoint(self, broker_id: int) -> BrokerEndpoint | None:
        """Return where clients reach a broker; None: it is not alive for them."""
        broker = self._brokers.get(broker_id)
        return None if broker is None or broker.fenced else self.endpoint_of(broker)

    def endpoint_of(self, broker: BrokerRegistration) -> BrokerEndpoint | None:
        """Return a broker's endpoint of this listener, also if the broker is fenced."""
        return next((one for one in broker.end_points if one.name == self._listener), None)

    def registered(self, broker_id: int) -> bool:
        """Return whether a broker is registered, alive or not."""
        return broker_id in self._brokers

    def described(self, *, with_fenced: bool = False) -> Iterator[Fields]:
        """Yield what clients learn about each broker, by number, in the fields of DescribeCluster.

        `with_fenced`: fenced brokers that have an endpoint, too.
        """
        for broker_id in self._ids:
            broker = self._brokers[broker_id]
            point = self.endpoint_of(broker)
            if point is not None and (with_fenced or not broker.fenced):
                yield {
                    "BrokerId": broker_id,
                    "Host": point.host,
                    "Port": point.port,
                    "Rack": broker.rack,
                    "IsFenced": broker.fenced,
                }

    def controller_for(self, node_id: int) -> int:
        """Return the broker that clients shall send changes to; -1: none is alive.

        Any broker forwards changes to the active controller (KIP-590), so it is the broker that
        answers. If that one isn't alive, it is the first that is.
        """
        if self.endpoint(node_id) is not None:
            return node_id
        return next((one for one in self._ids if self.endpoint(one) is not None), NOBODY)
