"""Replies about the controllers. `GET /v1/quorum`, `GET /v1/status`, `GET /health/...`."""

from metadata.messages.message import ReplyMessage


class QuorumMember(ReplyMessage, frozen=True):
    """One controller, as the answering node knows it."""

    node_id: int
    directory_id: str
    host: str = ""
    port: int = 0
    url: str | None = None
    is_voter: bool = True
    match_index: int = 0
    """The highest entry known to be durable there; 0: unknown."""
    last_contact_ms: int | None = None
    """Since its last answer; None: none in this epoch, or not the leader's knowledge."""
    wire_format: int = 0
    """What the leader's link with it speaks: 1 with release 0.1; 0: unknown, or no link."""


class QuorumReply(ReplyMessage, frozen=True):
    """The quorum (Kafka's DescribeQuorum)."""

    cluster_id: str
    node_id: int
    directory_id: str
    role: str
    """leader, follower, candidate, observer or damaged."""
    leader_id: int | None
    leader_epoch: int
    leader_url: str | None
    high_watermark: int
    commit_index: int
    applied_index: int
    last_index: int
    durable_index: int
    journal_bytes: int
    members: tuple[QuorumMember, ...]
    note: str = ""
    """A sentence when the node is held back, else empty."""


class StatusReply(ReplyMessage, frozen=True):
    """One controller and the cluster as it sees it."""

    cluster_id: str
    node_id: int
    version: str
    """Of the software."""
    role: str
    active: bool
    """It leads and has begun its epoch."""
    leader_id: int | None
    leader_epoch: int
    leader_url: str | None
    log_start: int
    log_end: int
    """Of the ledger: every record before it is committed and here."""
    offset: int
    """Of the image."""
    epoch: int
    """Of the image's last batch."""
    timestamp_ms: int
    """Of the image's last batch, since 1970."""
    chain_hash: str
    """At `log_end`, in hexadecimal digits, as the next two."""
    state_hash: str
    controllers_hash: str
    brokers: dict[str, int]
    """How many are offline, fenced, online, stopping."""
    topics: int
    partitions: int
    leaderless: int
    newest_snapshot: str | None = None
    history_from: int = 0
    """The first offset that is here, while older history is missing or being fetched."""
    uptime_ms: int = 0
    note: str = ""
    """A sentence when something is wrong, else empty."""
    repairs: tuple[str, ...] = ()
    """What was found damaged since its start, and what was repaired; the newest of it."""
    scrubbed_ms: int = 0
    """When all closed files were last read through and found sound, since 1970; 0 not yet."""


class HealthReply(ReplyMessage, frozen=True):
    """`live`: the process works. `ready`: it can do its part."""

    healthy: bool
    reason: str
    """A sentence, whichever it is."""
    role: str = ""
    offset: int = -1
    epoch: int = -1
