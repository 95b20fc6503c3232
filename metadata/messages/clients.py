"""The metadata that an agent shows its broker's clients: `GET /v1/metadata` of an agent."""

from metadata.messages.message import ReplyMessage


class ClientBroker(ReplyMessage, frozen=True):
    """A broker that is not fenced."""

    broker_id: int
    endpoints: dict[str, str]
    """`host:port`, by the listener's name."""
    rack: str | None = None


class ClientPartition(ReplyMessage, frozen=True):
    """One partition with its leader and replicas, by broker id."""

    partition: int
    leader: int
    """-1: there is none."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class ClientTopic(ReplyMessage, frozen=True):
    """A topic with its partitions."""

    name: str
    topic_id: str
    partitions: tuple[ClientPartition, ...]


class ClientMetadata(ReplyMessage, frozen=True):
    """Brokers and topics of one image; fenced brokers are left out."""

    offset: int
    epoch: int
    brokers: tuple[ClientBroker, ...]
    topics: tuple[ClientTopic, ...]
