"""What a broker shows its own clients: `GET /v1/metadata` of an agent."""

from metadata.messages.message import ReplyMessage


class ClientBroker(ReplyMessage, frozen=True):
    """A broker that serves."""

    broker_id: int
    endpoints: dict[str, str]
    """host:port by listener name."""
    rack: str | None = None


class ClientPartition(ReplyMessage, frozen=True):
    """Who leads a partition."""

    partition: int
    leader: int
    """-1: nobody."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class ClientTopic(ReplyMessage, frozen=True):
    """A topic."""

    name: str
    topic_id: str
    partitions: tuple[ClientPartition, ...]


class ClientMetadata(ReplyMessage, frozen=True):
    """The cluster as of one image; fenced brokers are left out."""

    offset: int
    epoch: int
    brokers: tuple[ClientBroker, ...]
    topics: tuple[ClientTopic, ...]
